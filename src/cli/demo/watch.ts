import { isTerminal, type Job, type RunRecord } from '../../job.ts';
import type { Mulligan } from '../../mulligan.ts';

/** What changed since the last snapshot. */
export interface Snapshot {
  readonly jobs: readonly Job[];
  /** Runs that ended since, in the order they ended. */
  readonly ended: readonly { readonly job: Job; readonly record: RunRecord }[];
  readonly done: boolean;
}

const MOST_JOBS = 1_000;

/** Reads the store again and again: it sees what any process would see, whichever process ran the jobs. */
export class Watch {
  readonly #mulligan: Mulligan;
  readonly #seen: Map<string, { readonly version: string; readonly runs: number }> = new Map();

  constructor(mulligan: Mulligan) {
    this.#mulligan = mulligan;
  }

  async snapshot(): Promise<Snapshot> {
    const jobs = (await this.#mulligan.jobs.list({ limit: MOST_JOBS })).reverse();
    const ended = (await Promise.all(jobs.map((job) => this.#newRuns(job)))).flat();
    ended.sort((a, b) => a.record.endedAt - b.record.endedAt);
    return { jobs, ended, done: jobs.every(({ state }) => isTerminal(state)) };
  }

  async #newRuns(job: Job): Promise<{ job: Job; record: RunRecord }[]> {
    const before = this.#seen.get(job.id);
    const version = `${job.state} ${job.runs}`;
    if (before?.version === version || job.runs === 0) return [];
    const runs = await this.#mulligan.jobs.runs(job.id);
    this.#seen.set(job.id, { version, runs: runs.length });
    return runs.slice(before?.runs ?? 0).map((record) => ({ job, record }));
  }
}
