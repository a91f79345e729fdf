import type { Timer } from '../../clock.ts';
import { doubling, Pauses } from '../../retrying.ts';
import type { JobsListeners } from '../jobs-listeners.ts';
import type { Unsubscribe } from '../store.ts';
import type { Database } from './connection/database.ts';
import type { ClientLike } from './connection/driver.ts';
import { CANCELLING, ENDED, IDS_PER_NOTIFICATION } from './sql/ended.ts';
import { TrailingNotifications } from './trailing-notifications.ts';

/**
 * Every NOTIFY takes a lock of the whole database. So a process sends a few of them one after the other, and then no
 * more than one in this time.
 */
const NOTIFY_EVERY_MS = 10;
const NOTIFICATIONS_AT_ONCE = 5;
/** How often the listening connection is checked, and how long an answer may take before it is replaced. */
const CHECK_EVERY_MS = 15_000;
const CHECK_TIMEOUT_MS = 5_000;
const reconnects = doubling(250, 15_000);

/** What a notification says beside its sender: a job was put where claims of other processes may have passed. */
const PAST = ' past';
/**
 * What a caller's transaction notifies of: all processes, this one too, because none knows when it will be committed. The
 * same text each time, so that the server sends it once per transaction.
 */
const FROM_TRANSACTION = `transaction${PAST}`;

/**
 * Wakes workers when there may be work: those of this process at once, those of others by NOTIFY, which is part of our
 * own enqueues, and of a caller's transaction that enqueues, at the same limited rate. Only ever a hint; polling is the truth.
 */
export class Wake {
  readonly #listeners: Set<() => void> = new Set();
  readonly #db: Database;
  /** Null when other processes find new work by polling. */
  readonly #outbox: Outbox | null;
  readonly #trailing: TrailingNotifications;
  /** Called before the listeners when another process has put a job where claims of this one may have passed. */
  onPast: () => void = () => {};
  /** Told of jobs that other processes have ended or cancelled. */
  onJobs: Pick<JobsListeners, 'ended' | 'cancelling' | 'missed'> | null = null;
  #listening: Listening | null = null;
  #closed = false;

  constructor(db: Database, notifiesOthers: boolean) {
    this.#db = db;
    this.#outbox = notifiesOthers ? new Outbox(db) : null;
    this.#trailing = new TrailingNotifications(db.clock, () => {
      this.onPast();
      this.notify(true);
    });
  }

  add(listener: () => void): Unsubscribe {
    this.#listeners.add(listener);
    this.listen();
    return () => this.#listeners.delete(listener);
  }

  /** Whether processes notify each other. */
  get reachesOthers(): boolean {
    return this.#outbox !== null;
  }

  /** From now on, other processes are heard. */
  listen(): void {
    if (this.#outbox === null || this.#closed) return;
    this.#listening ??= new Listening(
      this.#db,
      channelOf(this.#db),
      (notification) => this.#heard(notification),
      () => this.#resumed(),
    );
  }

  /** Notifications may have been missed while the connection was broken. */
  #resumed(): void {
    this.notifyOwn();
    this.onJobs?.missed();
  }

  #heard(notification: string): void {
    const idsAfter = (prefix: string): string[] => notification.slice(prefix.length).split(',');
    if (notification.startsWith(ENDED)) this.onJobs?.ended(idsAfter(ENDED));
    else if (notification.startsWith(CANCELLING)) this.onJobs?.cancelling(idsAfter(CANCELLING));
    // This process was woken when it sent the notification.
    else if (!notification.startsWith((this.#outbox as Outbox).sender)) {
      if (notification.endsWith(PAST)) this.onPast();
      this.notifyOwn();
    }
  }

  /** The workers of other processes stop these jobs. Not awaited: one that does not get it learns it from a heartbeat. */
  notifyCancelling(ids: readonly string[]): void {
    if (this.#outbox === null || this.#closed) return;
    for (let at = 0; at < ids.length; at += IDS_PER_NOTIFICATION) {
      const notification = CANCELLING + ids.slice(at, at + IDS_PER_NOTIFICATION).join(',');
      this.#db.query('SELECT pg_notify($1, $2)', [channelOf(this.#db), notification]).catch(() => {});
    }
  }

  /**
   * What a caller's transaction that makes work should notify of. Null when it should not: then all processes are notified
   * several times after it, this one too.
   */
  takeFromTransaction(): string | null {
    if (this.#outbox === null || this.#closed) return null;
    if (this.#outbox.take(true) !== null) return FROM_TRANSACTION;
    this.#trailing.start();
    return null;
  }

  /** After a statement that made work without a notification: not before it, or others would look too early. */
  notify(hasPast = false): void {
    this.notifyOwn();
    this.#outbox?.send(hasPast);
  }

  notifyOwn(): void {
    for (const listener of this.#listeners) listener();
  }

  /** The notification that a statement which makes work should send; null when others are to be notified after it. */
  takeNotification(hasPast: boolean): string | null {
    return this.#outbox?.take(hasPast) ?? null;
  }

  async close(): Promise<void> {
    this.#closed = true;
    // The last chance to notify of transactions that have committed by now.
    if (this.#trailing.cancel()) this.#outbox?.send(true);
    await this.#outbox?.close();
    await this.#listening?.close();
  }
}

/** Notifications to other processes, at a limited rate: one that comes too soon is pending, and stands for all after it. */
class Outbox {
  /** Names this process in its notifications. */
  readonly sender: string;
  readonly #db: Database;
  /** Sent so recently that they count against those at once. */
  #recent = 0;
  #pace: Timer | null = null;
  #isPending = false;
  #isPastPending = false;
  #closed = false;
  /** The last notification, until the server has it. */
  #sent: Promise<void> = Promise.resolve();

  constructor(db: Database) {
    this.#db = db;
    this.sender = db.clock.newId();
  }

  take(hasPast: boolean): string | null {
    if (this.#closed || this.#recent >= NOTIFICATIONS_AT_ONCE) return null;
    this.#count();
    return hasPast ? this.sender + PAST : this.sender;
  }

  send(hasPast: boolean): void {
    const notification = this.take(hasPast);
    this.#isPending = notification === null && !this.#closed;
    this.#isPastPending = this.#isPending && (hasPast || this.#isPastPending);
    if (notification !== null) this.#sent = this.#notify(notification);
  }

  /** Sends what is pending, which may be the only notification of a job, and waits until it is sent. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#pace?.cancel();
    if (this.#isPending) this.#sent = this.#notify(this.sender + PAST);
    await this.#sent;
  }

  /** Never rejects: a process that does not get it finds the work by polling. */
  async #notify(notification: string): Promise<void> {
    await this.#db.query('SELECT pg_notify($1, $2)', [channelOf(this.#db), notification]).catch(() => {});
  }

  #count(): void {
    this.#recent++;
    this.#pace ??= this.#db.clock.after(NOTIFY_EVERY_MS, () => this.#forgetOne());
  }

  #forgetOne(): void {
    this.#recent--;
    this.#pace = this.#recent > 0 ? this.#db.clock.after(NOTIFY_EVERY_MS, () => this.#forgetOne()) : null;
    if (this.#isPending) this.send(this.#isPastPending);
  }
}

export function channelOf(db: Database): string {
  return `mulligan_${db.schema}`;
}

/** A connection that listens, and is replaced when it breaks or falls silent. */
class Listening {
  readonly #db: Database;
  readonly #channel: string;
  readonly #onNotification: (notification: string) => void;
  readonly #onResumed: () => void;
  #client: ClientLike | null = null;
  #timer: Timer | null = null;
  readonly #pauses: Pauses;
  #hasBroken = false;
  #closed = false;

  constructor(db: Database, channel: string, onNotification: (notification: string) => void, onResumed: () => void) {
    this.#db = db;
    this.#pauses = new Pauses(reconnects, () => db.clock.random());
    this.#channel = channel;
    this.#onNotification = onNotification;
    this.#onResumed = onResumed;
    void this.#connect();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#drop();
  }

  async #connect(): Promise<void> {
    try {
      const client = await this.#db.hosts.client();
      if (this.#closed) return void client.end();
      this.#client = client;
      const broken = (): void => {
        if (this.#client === client) this.#reconnect();
      };
      client.on('error', broken);
      client.on('end', broken);
      client.on('notification', ({ payload }) => this.#onNotification(payload ?? ''));
      await client.query(`LISTEN ${this.#channel}`);
      this.#pauses.reset();
      if (this.#hasBroken) this.#onResumed();
      this.#checkLater(client);
    } catch {
      this.#reconnect();
    }
  }

  #checkLater(client: ClientLike): void {
    if (this.#closed || this.#client !== client) return;
    this.#timer = this.#db.clock.after(CHECK_EVERY_MS, () => {
      // A connection that was cut off silently answers nothing, not even an error.
      this.#timer = this.#db.clock.after(CHECK_TIMEOUT_MS, () => this.#reconnect());
      client.query('SELECT 1').then(
        () => {
          this.#timer?.cancel();
          this.#checkLater(client);
        },
        () => {},
      );
    });
  }

  #reconnect(): void {
    this.#timer?.cancel();
    void this.#drop();
    if (this.#closed) return;
    this.#hasBroken = true;
    this.#timer = this.#db.clock.after(this.#pauses.next(), () => void this.#connect());
  }

  async #drop(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    try {
      await client?.end();
    } catch {
      // It was broken already.
    }
  }
}
