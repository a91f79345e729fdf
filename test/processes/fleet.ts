import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Duration, Mulligan } from '../../src/index.ts';
import type { WorkOptions } from '../../src/worker/options.ts';
import { jobs } from './jobs.ts';
import type { Order } from './worker-process.ts';

export interface Message {
  readonly log?: { readonly level: string; readonly message: string };
  readonly leaseLost?: { readonly id: string; readonly run: number };
  readonly completed?: { readonly id: string; readonly run: number };
  readonly started?: { readonly id: string; readonly run: number };
}

export interface StartOptions {
  /** Options for Node.js itself. */
  readonly execArgv?: readonly string[];
  /** Its wall clock can be set, see `WorkerProcess.order`. */
  readonly movableClock?: boolean;
  /** It says which runs it has started. */
  readonly tellsStarts?: boolean;
}

export interface WorkerProcess {
  readonly child: ChildProcess;
  readonly messages: Message[];
  /** Resolves once it works; rejects when it ends before. */
  readonly ready: Promise<void>;
  /** Resolves with the first message that fits, past or future. */
  heard(fits: (message: Message) => boolean): Promise<Message>;
  /** What it has printed as errors and warnings. */
  stderr(): string;
  order(order: Order): void;
  stop(grace?: Duration): Promise<void>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
}

/** Real processes on one queue, and a client in the test itself. All of it is gone when the test ends. */
export class Fleet implements AsyncDisposable {
  readonly url: string;
  readonly mulligan: Mulligan;
  readonly #ownFolder: string | null;
  readonly #workers: Set<WorkerProcess> = new Set();

  /** On a SQLite file in a folder of its own, or in one that its owner removes. */
  static async open(folder?: string): Promise<Fleet> {
    const ownFolder = folder === undefined ? mkdtempSync(join(tmpdir(), 'mulligan-')) : null;
    const path = join(folder ?? (ownFolder as string), 'jobs.db');
    return Fleet.at(`sqlite:${path}`, ownFolder);
  }

  /** On a queue that its owner removes. */
  static async at(url: string, ownFolder: string | null = null): Promise<Fleet> {
    return new Fleet(ownFolder, url, await Mulligan.open(url, { jobs, log: () => {} }));
  }

  private constructor(ownFolder: string | null, url: string, mulligan: Mulligan) {
    this.#ownFolder = ownFolder;
    this.url = url;
    this.mulligan = mulligan;
  }

  /** The SQLite file. */
  get path(): string {
    return this.url.replace(/^sqlite:/, '');
  }

  /** A worker process that works. */
  async start(options: WorkOptions, startOptions: StartOptions = {}): Promise<WorkerProcess> {
    const worker = this.launch(options, startOptions);
    await worker.ready;
    return worker;
  }

  /** A worker process that is about to work. */
  launch(options: WorkOptions, startOptions: StartOptions = {}): WorkerProcess {
    const { execArgv = [], movableClock = false, tellsStarts = false } = startOptions;
    const script = new URL('./worker-process.ts', import.meta.url);
    const traits = [...(movableClock ? ['movable-clock'] : []), ...(tellsStarts ? ['tells-starts'] : [])];
    const child = fork(script, [this.url, JSON.stringify(options), ...traits], {
      execArgv: ['--disable-warning=ExperimentalWarning', ...execArgv],
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    });
    const worker = workerProcess(child);
    this.#workers.add(worker);
    child.once('exit', () => this.#workers.delete(worker));
    return worker;
  }

  /**
   * SIGSTOP for a worker on a SQLite file; resolves when it has stopped. The test has the write lock of the file meanwhile,
   * so the worker cannot stop with it: no process could write then until the worker goes on.
   */
  async pause({ child }: WorkerProcess): Promise<void> {
    using holder = new DatabaseSync(this.path, { timeout: 30_000 });
    holder.exec('BEGIN IMMEDIATE');
    child.kill('SIGSTOP');
    while (!isStopped(child.pid as number)) await sleep(1);
    holder.exec('ROLLBACK');
  }

  /** Looks until a condition on the store holds. */
  async until(holds: (mulligan: Mulligan) => Promise<boolean>): Promise<void> {
    while (!(await holds(this.mulligan))) await sleep(20);
  }

  /** Nothing waits and nothing runs. */
  async allEnded(): Promise<void> {
    await this.until(async (mulligan) => {
      const { states } = await mulligan.stats();
      return states.ready + states.running + states.scheduled + states.retrying === 0;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.kill()));
    await this.mulligan.close();
    if (this.#ownFolder !== null) rmSync(this.#ownFolder, { recursive: true });
  }
}

/** Whether all threads of a process have stopped. Only Linux tells; elsewhere the signal has to be trusted. */
function isStopped(pid: number): boolean {
  const threads = `/proc/${pid}/task`;
  if (!existsSync(threads)) return true;
  return readdirSync(threads).every((thread) => readFileSync(join(threads, thread, 'stat'), 'utf8').includes(') T '));
}

function workerProcess(child: ChildProcess): WorkerProcess {
  const messages: Message[] = [];
  let stderr = '';
  child.on('message', (message) => messages.push(message as Message));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exit = once(child, 'exit');
  const early = exit.then(() => Promise.reject(new Error(`a worker process ended before it was ready: ${stderr}`)));
  const ready = Promise.race([once(child, 'message').then(() => {}), early]);
  // Whoever does not wait for it does not mind.
  ready.catch(() => {});
  const end = async (tell: () => void): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) tell();
    await exit;
  };
  return {
    child,
    messages,
    ready,
    async heard(fits) {
      for (;;) {
        const found = messages.find(fits);
        if (found) return found;
        await once(child, 'message');
      }
    },
    stderr: () => stderr,
    order: (order) => void child.send(order),
    stop: (grace) => end(() => (grace === undefined ? child.kill('SIGTERM') : child.send({ stop: { grace } }))),
    kill: () => end(() => child.kill('SIGKILL')),
  };
}
