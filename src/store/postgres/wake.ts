import type { Timer } from '../../clock.ts';
import type { Unsubscribe } from '../store.ts';
import type { Database } from './connection/database.ts';
import type { ClientLike } from './connection/driver.ts';

/**
 * Every notice passes through a lock of the whole database. So a process sends a few of them one after the other, and
 * then no more than one in this time.
 */
const NOTICE_EVERY_MS = 10;
const NOTICES_AT_ONCE = 5;
/** How often the listening connection must show that it lives, and how long to wait before it is made anew. */
const CHECK_EVERY_MS = 15_000;
const CHECK_TIMEOUT_MS = 5_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;

/**
 * Tells workers that there may be work: those of this process at once, those of others by NOTIFY, which goes with our
 * own enqueues and never with a caller's transaction. Only ever a hint; polling is the truth.
 */
export class Wake {
  readonly #db: Database;
  readonly #listeners: Set<() => void> = new Set();
  readonly #tellsOthers: boolean;
  /** Marks our own notices, which are old news when they come back. */
  readonly #self: string;
  /** Notices that still count against those at once. */
  #recent = 0;
  #pace: Timer | null = null;
  /** Others are to be told soon. */
  #owed = false;
  #listening: Listening | null = null;
  #closed = false;

  constructor(db: Database, tellsOthers: boolean) {
    this.#db = db;
    this.#tellsOthers = tellsOthers;
    this.#self = db.clock.newId();
  }

  add(listener: () => void): Unsubscribe {
    this.#listeners.add(listener);
    if (this.#tellsOthers && !this.#closed) {
      this.#listening ??= new Listening(this.#db, channelOf(this.#db), (from) => {
        if (from !== this.#self) this.tellOwn();
      });
    }
    return () => this.#listeners.delete(listener);
  }

  /** After work was made by a statement that told nobody: not before, or others would look too early. */
  tell(): void {
    this.tellOwn();
    if (!this.#tellsOthers || this.#closed) return;
    this.#owed = this.#recent >= NOTICES_AT_ONCE;
    if (this.#owed) return;
    this.#spend();
    this.#send(this.#self);
  }

  tellOwn(): void {
    for (const listener of this.#listeners) listener();
  }

  /** What a statement that makes work should tell others; null when it should not, and they are to be told after it. */
  notice(): string | null {
    if (!this.#tellsOthers || this.#closed || this.#recent >= NOTICES_AT_ONCE) return null;
    this.#spend();
    return this.#self;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#pace?.cancel();
    await this.#listening?.close();
  }

  #spend(): void {
    this.#recent++;
    this.#pace ??= this.#db.clock.after(NOTICE_EVERY_MS, () => this.#regain());
  }

  #regain(): void {
    this.#recent--;
    this.#pace = this.#recent > 0 ? this.#db.clock.after(NOTICE_EVERY_MS, () => this.#regain()) : null;
    if (!this.#owed || this.#closed) return;
    this.#owed = false;
    this.#spend();
    this.#send(this.#self);
  }

  #send(notice: string): void {
    // Nobody waits for it: whoever does not hear it finds the work by polling.
    this.#db.query('SELECT pg_notify($1, $2)', [channelOf(this.#db), notice]).catch(() => {});
  }
}

export function channelOf(db: Database): string {
  return `mulligan_${db.schema}`;
}

/** A connection that listens, and is made anew when it breaks or falls silent. */
class Listening {
  readonly #db: Database;
  readonly #channel: string;
  readonly #heard: (from: string) => void;
  #client: ClientLike | null = null;
  #timer: Timer | null = null;
  #pauseMs = FIRST_PAUSE_MS;
  #broken = false;
  #closed = false;

  constructor(db: Database, channel: string, heard: (from: string) => void) {
    this.#db = db;
    this.#channel = channel;
    this.#heard = heard;
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
        if (this.#client === client) this.#again();
      };
      client.on('error', broken);
      client.on('end', broken);
      client.on('notification', ({ payload }) => this.#heard(payload ?? ''));
      await client.query(`LISTEN ${this.#channel}`);
      this.#pauseMs = FIRST_PAUSE_MS;
      // Notices may have been missed since the last connection broke.
      if (this.#broken) this.#heard('');
      this.#checkLater(client);
    } catch {
      this.#again();
    }
  }

  #checkLater(client: ClientLike): void {
    if (this.#closed || this.#client !== client) return;
    this.#timer = this.#db.clock.after(CHECK_EVERY_MS, () => {
      // A connection that was cut off silently answers nothing, not even an error.
      this.#timer = this.#db.clock.after(CHECK_TIMEOUT_MS, () => this.#again());
      client.query('SELECT 1').then(
        () => {
          this.#timer?.cancel();
          this.#checkLater(client);
        },
        () => {},
      );
    });
  }

  #again(): void {
    this.#timer?.cancel();
    void this.#drop();
    if (this.#closed) return;
    this.#broken = true;
    const { clock } = this.#db;
    const pauseMs = this.#pauseMs * (0.5 + clock.random());
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
    this.#timer = clock.after(pauseMs, () => void this.#connect());
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
