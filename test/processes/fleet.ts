import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Mulligan } from '../../src/index.ts';
import type { WorkOptions } from '../../src/worker/options.ts';
import { jobs } from './jobs.ts';

export interface Message {
  readonly log?: { readonly level: string; readonly message: string };
  readonly leaseLost?: { readonly id: string; readonly run: number };
  readonly completed?: { readonly id: string; readonly run: number };
}

export interface WorkerProcess {
  readonly child: ChildProcess;
  readonly messages: Message[];
  /** Resolves with the first message that fits, past or future. */
  heard(fits: (message: Message) => boolean): Promise<Message>;
  stop(): Promise<void>;
}

/** Real processes on one SQLite file, and a client in the test itself. All of it is gone when the test ends. */
export class Fleet implements AsyncDisposable {
  readonly url: string;
  readonly mulligan: Mulligan;
  readonly #folder: string;
  readonly #children: Set<ChildProcess> = new Set();

  static async open(): Promise<Fleet> {
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
    const url = `sqlite:${join(folder, 'jobs.db')}`;
    return new Fleet(folder, url, await Mulligan.open(url, { jobs, log: () => {} }));
  }

  private constructor(folder: string, url: string, mulligan: Mulligan) {
    this.#folder = folder;
    this.url = url;
    this.mulligan = mulligan;
  }

  async start(options: WorkOptions): Promise<WorkerProcess> {
    const script = new URL('./worker-process.ts', import.meta.url);
    const child = fork(script, [this.url, JSON.stringify(options)], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#children.add(child);
    child.once('exit', () => this.#children.delete(child));
    const messages: Message[] = [];
    child.on('message', (message) => messages.push(message as Message));
    await once(child, 'message');
    const heard = async (fits: (message: Message) => boolean): Promise<Message> => {
      for (;;) {
        const found = messages.find(fits);
        if (found) return found;
        await once(child, 'message');
      }
    };
    const stop = async (): Promise<void> => {
      child.kill('SIGTERM');
      await once(child, 'exit');
    };
    return { child, messages, heard, stop };
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
    const exits = [...this.#children].map((child) => once(child, 'exit'));
    for (const child of this.#children) child.kill('SIGKILL');
    await Promise.all(exits);
    await this.mulligan.close();
    rmSync(this.#folder, { recursive: true });
  }
}
