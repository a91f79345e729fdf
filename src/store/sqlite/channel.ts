import { Worker } from 'node:worker_threads';
import type { Clock } from '../../clock.ts';
import {
  ClosedError,
  ConfigError,
  type ErrorCode,
  MulliganError,
  StoreBusyError,
  StoreIncompatibleError,
  StoreUnavailableError,
} from '../../errors.ts';
import { type Call, Engine, type VerbName } from './engine.ts';
import { GroupCommit } from './group-commit.ts';
import { type Missing, openDatabase } from './open.ts';

/** A way to the engine: on a thread of its own, or right here. */
export interface Channel {
  call(verb: VerbName, args: readonly unknown[]): Promise<unknown>;
  /** Start telling about commits of other processes. */
  watch(): void;
  close(): Promise<void>;
}

export type ToThread =
  | { readonly kind: 'calls'; readonly calls: readonly { readonly id: number; readonly call: Call }[] }
  | { readonly kind: 'watch' }
  | { readonly kind: 'close' };

export type FromThread =
  | { readonly kind: 'open' }
  | { readonly kind: 'refused'; readonly error: SentError }
  | { readonly kind: 'answers'; readonly answers: readonly { readonly id: number; readonly result: SentResult }[] }
  | { readonly kind: 'work' };

/** Structured clone strips classes from errors; the code says which one to make again. */
export interface SentError {
  readonly code: ErrorCode;
  readonly message: string;
}
export type SentResult = { readonly value: unknown } | { readonly error: SentError };

export interface ThreadData {
  readonly path: string;
  readonly missing: Missing;
}

/** A module that calls `serve` (see serve.ts), and what else it gets: tests bring one with a clock they can move. */
export interface ThreadEntry {
  readonly module: URL;
  readonly data?: Readonly<Record<string, unknown>>;
}

// The sources run as they are in tests, the compiled files in production.
const ownEntry: ThreadEntry = {
  module: new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url),
};

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Calls of one tick travel as one message, and become one transaction. */
export class ThreadChannel implements Channel {
  readonly #thread: Worker;
  readonly #onWork: () => void;
  readonly #pending: Map<number, Pending> = new Map();
  #outbox: { id: number; call: Call }[] = [];
  #lastId = 0;
  #ended: Error | null = null;
  #onAnswered: () => void = () => {};
  readonly #opened: Promise<void>;
  readonly #closed: Promise<void>;

  static async open(data: ThreadData, onWork: () => void, entry: ThreadEntry = ownEntry): Promise<ThreadChannel> {
    const channel = new ThreadChannel(data, onWork, entry);
    await channel.#opened;
    channel.#thread.unref();
    return channel;
  }

  private constructor(data: ThreadData, onWork: () => void, entry: ThreadEntry) {
    const { path } = data;
    this.#onWork = onWork;
    this.#thread = new Worker(entry.module, { workerData: { ...entry.data, ...data }, execArgv: QUIET });
    const opened = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    this.#opened = opened.promise;
    this.#closed = closed.promise;
    this.#thread.on('message', (message: FromThread) => {
      if (message.kind === 'open') opened.resolve();
      else if (message.kind === 'refused') opened.reject(revive(message.error));
      else this.#receive(message);
    });
    this.#thread.on('error', (error) => {
      this.#fail(new StoreUnavailableError(`${path}: the database thread failed: ${error.message}`, { cause: error }));
    });
    this.#thread.on('exit', () => {
      this.#fail(new ClosedError(`${path}: the store is closed`));
      opened.reject(this.#ended as Error);
      closed.resolve();
    });
  }

  call(verb: VerbName, args: readonly unknown[]): Promise<unknown> {
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId;
      // A call under way keeps the process alive; an idle store does not.
      if (this.#pending.size === 0) this.#thread.ref();
      this.#pending.set(id, { resolve, reject });
      if (this.#outbox.length === 0) queueMicrotask(() => this.#post());
      this.#outbox.push({ id, call: { verb, args } });
    });
  }

  watch(): void {
    this.#send({ kind: 'watch' });
  }

  /** After what is under way has been answered. */
  async close(): Promise<void> {
    this.#thread.ref();
    while (this.#pending.size > 0) await new Promise<void>((resolve) => (this.#onAnswered = resolve));
    this.#send({ kind: 'close' });
    await this.#closed;
  }

  #post(): void {
    const calls = this.#outbox;
    this.#outbox = [];
    this.#send({ kind: 'calls', calls });
  }

  #send(message: ToThread): void {
    this.#thread.postMessage(message);
  }

  #receive(message: FromThread): void {
    if (message.kind === 'work') this.#onWork();
    if (message.kind !== 'answers') return;
    for (const { id, result } of message.answers) {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if ('error' in result) pending?.reject(revive(result.error));
      else pending?.resolve(result.value);
    }
    if (this.#pending.size > 0) return;
    this.#thread.unref();
    this.#onAnswered();
  }

  #fail(error: Error): void {
    this.#ended ??= error;
    for (const pending of this.#pending.values()) pending.reject(this.#ended);
    this.#pending.clear();
    this.#onAnswered();
  }
}

/** node:sqlite still announces itself as experimental on standard error; once per thread is once too often. */
const QUIET: string[] = ['--disable-warning=ExperimentalWarning'];

function revive({ code, message }: SentError): MulliganError {
  switch (code) {
    case 'CONFIG':
      return new ConfigError(message);
    case 'CLOSED':
      return new ClosedError(message);
    case 'STORE_BUSY':
      return new StoreBusyError(message);
    case 'STORE_INCOMPATIBLE':
      return new StoreIncompatibleError(message);
    case 'STORE_UNAVAILABLE':
      return new StoreUnavailableError(message);
    default:
      return new MulliganError(code, message);
  }
}

/** The engine in this very thread, on a clock of the caller's: for simulation and tests. */
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
    this.#commits.close();
  }
}
