import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Mulligan } from '../../src/index.ts';
import type { WorkOptions } from '../../src/worker/options.ts';
import { limitJobs } from './jobs.ts';

/** Worker processes on one queue that are killed and replaced, and what their handlers wrote. */
export class Crew implements AsyncDisposable {
  readonly mulligan: Mulligan;
  /** Where handlers write. */
  readonly file: string;
  readonly #url: string;
  readonly #folder: string;
  readonly #options: WorkOptions;
  readonly #members: ChildProcess[] = [];
  /** When a process was gone, by its id. */
  readonly #goneAt: Map<number, bigint> = new Map();

  /** On a SQLite file of its own, or at a URL that its owner clears. */
  static async start(size: number, options: WorkOptions, url?: string): Promise<Crew> {
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-limits-'));
    const address = url ?? `sqlite:${join(folder, 'jobs.db')}`;
    const mulligan = await Mulligan.open(address, { jobs: limitJobs, log: () => {} });
    const crew = new Crew(address, folder, options, mulligan);
    await Promise.all(Array.from({ length: size }, (_, index) => crew.#hire(index)));
    return crew;
  }

  private constructor(url: string, folder: string, options: WorkOptions, mulligan: Mulligan) {
    this.#url = url;
    this.#folder = folder;
    this.#options = options;
    this.mulligan = mulligan;
    this.file = join(folder, 'runs');
  }

  async #hire(index: number): Promise<void> {
    const script = new URL('./worker-process.ts', import.meta.url);
    const child = fork(script, [this.#url, JSON.stringify(this.#options)], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#members[index] = child;
    child.once('exit', () => this.#goneAt.set(child.pid as number, process.hrtime.bigint()));
    await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => Promise.reject(new Error('a worker process ended before it was ready'))),
    ]);
  }

  /** Ends one by SIGKILL and puts another in its place. */
  async replace(index: number): Promise<void> {
    await end(this.#members[index] as ChildProcess);
    await this.#hire(index);
  }

  async until(holds: () => Promise<boolean>): Promise<void> {
    while (!(await holds())) await sleep(100);
  }

  /** How many jobs wait to start. */
  async waiting(): Promise<number> {
    const { ready, scheduled, retrying } = (await this.mulligan.stats()).states;
    return ready + scheduled + retrying;
  }

  /** What handlers have done so far. A run whose process was killed ends with its process. */
  stays(): Stay[] {
    const open = new Map<string, Stay>();
    const stays: Stay[] = [];
    for (const line of readFileSync(this.file, 'utf8').trimEnd().split('\n')) {
      const [what, id, run, pid, at, key] = line.split(' ') as [string, string, string, string, string, string];
      const name = `${id} ${run}`;
      if (what === 'start') {
        const stay = { id, key, from: ms(BigInt(at)), to: ms(this.#goneAt.get(Number(pid)) ?? null) };
        open.set(name, stay);
        stays.push(stay);
      } else (open.get(name) as Stay).to = ms(BigInt(at));
    }
    return stays;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map(end));
    await this.mulligan.close();
    rmSync(this.#folder, { recursive: true });
  }
}

export interface Stay {
  readonly id: string;
  readonly key: string;
  readonly from: number;
  to: number;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

function ms(at: bigint | null): number {
  return at === null ? Number.POSITIVE_INFINITY : Number(at) / 1e6;
}

/** The largest number of stays that overlap. */
export function mostAtOnce(stays: readonly Pick<Stay, 'from' | 'to'>[]): number {
  let [now, most] = [0, 0];
  for (const [, change] of changesOf(stays)) {
    now += change;
    most = Math.max(most, now);
  }
  return most;
}

/** How many stays there are on average between two times. */
export function meanBetween(stays: readonly Pick<Stay, 'from' | 'to'>[], from: number, to: number): number {
  const lasted = stays.map((stay) => Math.max(0, Math.min(stay.to, to) - Math.max(stay.from, from)));
  return lasted.reduce((sum, one) => sum + one, 0) / (to - from);
}

/** Ends come before starts of the same moment. */
function changesOf(stays: readonly Pick<Stay, 'from' | 'to'>[]): [number, number][] {
  const changes = stays.flatMap(({ from, to }): [number, number][] => [
    [from, 1],
    [to, -1],
  ]);
  return changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

/** The largest number of times in any window of this length. */
export function mostInWindow(times: readonly number[], lengthMs: number): number {
  const sorted = [...times].sort((a, b) => a - b);
  let first = 0;
  return sorted.reduce((most, time, last) => {
    while ((sorted[first] as number) <= time - lengthMs) first++;
    return Math.max(most, last - first + 1);
  }, 0);
}
