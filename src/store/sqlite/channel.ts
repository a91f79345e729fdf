import { type Clock, systemClock } from '../../clock.ts';
import { ClosedError } from '../../errors.ts';
import type { VerbName } from '../verbs.ts';
import type { DatabaseThread } from './database-thread.ts';
import { Engine } from './engine.ts';
import { GroupCommit } from './group-commit.ts';
import { openDatabase } from './open.ts';

/** How calls reach the engine: on a thread of its own, or in the calling one. */
export interface Channel {
  call(verb: VerbName, args: readonly unknown[]): Promise<unknown>;
  /** From now on, report commits of other processes. */
  watch(): void;
  close(): Promise<void>;
}

/** Threads that die one after the other are not started more often than this. */
const START_EVERY_MS = 500;

/**
 * The engine on a thread of its own, started by the first call. When the thread dies, the calls under way fail, and their
 * results are unknown; the next call starts another thread.
 */
export class ThreadChannel implements Channel {
  readonly #start: () => Promise<DatabaseThread>;
  readonly #onWork: () => void;
  #thread: DatabaseThread | null = null;
  #starting: Promise<DatabaseThread> | null = null;
  #nextStartAt = 0;
  #watching = false;

  constructor(start: () => Promise<DatabaseThread>, onWork: () => void) {
    this.#start = start;
    this.#onWork = onWork;
  }

  /** Starts the thread if there is none: for callers that must know before they call. */
  async started(): Promise<void> {
    if (!this.#thread?.alive) await this.#running();
  }

  call(verb: VerbName, args: readonly unknown[]): Promise<unknown> {
    if (this.#thread?.alive) return this.#thread.call(verb, args);
    return this.#running().then((thread) => thread.call(verb, args));
  }

  watch(): void {
    this.#watching = true;
    this.#thread?.watch();
  }

  /** After what is under way has been answered. No call may follow. */
  async close(): Promise<void> {
    // Calls that wait for this start go first.
    await this.#starting?.catch(() => {});
    await this.#thread?.close();
  }

  #running(): Promise<DatabaseThread> {
    this.#starting ??= this.#startAnother().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #startAnother(): Promise<DatabaseThread> {
    const waitMs = this.#nextStartAt - systemClock.monotonic();
    if (waitMs > 0) await new Promise<void>((resolve) => systemClock.after(waitMs, resolve));
    this.#nextStartAt = systemClock.monotonic() + START_EVERY_MS;
    const thread = await this.#start();
    this.#thread = thread;
    if (this.#watching) {
      thread.watch();
      // While there was no thread, commits went unnoticed.
      this.#onWork();
    }
    return thread;
  }
}

/** The engine in the calling thread, on the caller's clock: for simulation and tests. */
export class DirectChannel implements Channel {
  readonly #commits: GroupCommit;
  #flushing = false;
  #closed = false;

  static async open(path: string, clock: Clock, onWork: () => void): Promise<DirectChannel> {
    const engine = new Engine(await openDatabase(path, clock), path, clock);
    return new DirectChannel(new GroupCommit(engine, path, clock, onWork));
  }

  private constructor(commits: GroupCommit) {
    this.#commits = commits;
  }

  call(verb: VerbName, args: readonly unknown[]): Promise<unknown> {
    if (this.#closed) return Promise.reject(new ClosedError('the store is closed'));
    return new Promise((resolve, reject) => {
      // A thread copies what crosses to it and back; do the same, so that nothing is shared by accident.
      this.#commits.add({
        call: { verb, args: structuredClone(args) },
        answer: (result) => ('error' in result ? reject(result.error) : resolve(structuredClone(result.value))),
      });
      if (this.#flushing) return;
      this.#flushing = true;
      queueMicrotask(() => {
        this.#flushing = false;
        this.#commits.flush();
      });
    });
  }

  /** There is no thread to watch from; callers of this channel poll. */
  watch(): void {}

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // What is under way goes first.
    this.#commits.flush();
    this.#commits.close();
  }
}
