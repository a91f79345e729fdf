import { Worker } from 'node:worker_threads';
import {
  ClosedError,
  ConfigError,
  type ErrorCode,
  MulliganError,
  StoreBusyError,
  StoreIncompatibleError,
  StoreUnavailableError,
} from '../../errors.ts';
import { partsOf } from '../../parts.ts';
import type { VerbName } from '../verbs.ts';
import type { Call } from './engine.ts';
import type { Missing } from './open.ts';
import { bytesOfCall, PART_BYTES } from './parts.ts';

export type ToThread =
  | { readonly kind: 'calls'; readonly calls: readonly { readonly id: number; readonly call: Call }[] }
  | { readonly kind: 'watch' }
  | { readonly kind: 'close' };

export type FromThread =
  | { readonly kind: 'open' }
  | { readonly kind: 'refused'; readonly error: SentError }
  | { readonly kind: 'answers'; readonly answers: readonly SentAnswer[]; readonly work: boolean };

export interface SentAnswer {
  readonly id: number;
  readonly result: SentResult;
}

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

/** A thread that owns a connection, until it ends. Calls of one tick travel as one message, and become one transaction. */
export class DatabaseThread {
  readonly #thread: Worker;
  readonly #onWork: () => void;
  readonly #pending: Map<number, Pending> = new Map();
  #outbox: { id: number; call: Call }[] = [];
  #lastId = 0;
  /** Why no call is answered any more; null while the thread lives. */
  #end: StoreUnavailableError | null = null;
  #onAnswered: () => void = () => {};
  readonly #opened: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #ended: PromiseWithResolvers<void> = Promise.withResolvers();

  static async start(data: ThreadData, onWork: () => void, entry: ThreadEntry = ownEntry): Promise<DatabaseThread> {
    const thread = new DatabaseThread(data, onWork, entry);
    await thread.#opened.promise;
    thread.#thread.unref();
    return thread;
  }

  private constructor(data: ThreadData, onWork: () => void, entry: ThreadEntry) {
    this.#onWork = onWork;
    this.#thread = new Worker(entry.module, {
      workerData: { ...entry.data, ...data },
      execArgv: QUIET,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    this.#thread.on('message', (message: FromThread) => this.#receive(message));
    this.#thread.on('messageerror', (cause) => this.#answersLost(cause));
    let thrown: Error | null = null;
    this.#thread.on('error', (error) => {
      thrown = error;
    });
    // Not before the exit, which follows an error: by then the connection is closed and its locks are gone.
    this.#thread.on('exit', () => {
      const why = thrown === null ? 'ended by itself' : `failed: ${thrown.message}`;
      this.#died(new StoreUnavailableError(`${data.path}: the database thread ${why}`, { cause: thrown }));
    });
  }

  get alive(): boolean {
    return this.#end === null;
  }

  call(verb: VerbName, args: readonly unknown[]): Promise<unknown> {
    if (this.#end) return Promise.reject(this.#end);
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
    while (this.#pending.size > 0) await new Promise<void>((resolve) => (this.#onAnswered = resolve));
    // The last answer has unreferenced the thread, and without it Node.js would end the process here.
    this.#thread.ref();
    this.#send({ kind: 'close' });
    await this.#ended.promise;
  }

  #post(): void {
    const calls = this.#outbox;
    this.#outbox = [];
    const bounds = { maxBytes: PART_BYTES, bytesOf: ({ call }: (typeof calls)[number]) => bytesOfCall(call) };
    for (const part of partsOf(calls, bounds)) this.#send({ kind: 'calls', calls: part });
  }

  #send(message: ToThread): void {
    this.#thread.postMessage(message);
  }

  #receive(message: FromThread): void {
    switch (message.kind) {
      case 'open':
        this.#opened.resolve();
        return;
      case 'refused':
        this.#opened.reject(revive(message.error));
        return;
      case 'answers':
        if (message.work) this.#onWork();
        if (message.answers.length > 0) this.#answer(message.answers);
    }
  }

  #answer(answers: readonly SentAnswer[]): void {
    for (const { id, result } of answers) {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if ('error' in result) pending?.reject(revive(result.error));
      else pending?.resolve(result.value);
    }
    if (this.#pending.size > 0) return;
    this.#thread.unref();
    this.#onAnswered();
  }

  /** A message of the thread cannot be read, and so not whose answers it has: all that wait are told. The thread goes on. */
  #answersLost(cause: unknown): void {
    this.#rejectAll(new StoreUnavailableError('an answer of the database thread cannot be read', { cause }));
    this.#thread.unref();
  }

  #rejectAll(error: StoreUnavailableError): void {
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
    this.#onAnswered();
  }

  #died(end: StoreUnavailableError): void {
    this.#end = end;
    this.#rejectAll(end);
    this.#opened.reject(end);
    this.#ended.resolve();
  }
}

/** Without it, node:sqlite would print a warning for every thread. */
const QUIET: string[] = ['--disable-warning=ExperimentalWarning'];

/** What a call allocates is garbage right after it; with a larger young generation the thread would only use more memory. */
const YOUNG_MB = 8;

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
