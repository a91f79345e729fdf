import { isTerminal, type Job, type RunRecord } from '../../job.ts';
import type { Mulligan } from '../../mulligan.ts';

/** What changed since the last look. */
export interface Look {
  readonly jobs: readonly Job[];
  /** Runs that ended since, in the order they ended. */
  readonly ended: readonly { readonly job: Job; readonly record: RunRecord }[];
  readonly done: boolean;
}

const MOST_JOBS = 1_000;

/** Looks at the store again and again: what it sees is what any process would, whoever ran the jobs. */
export class Watch {
  readonly #mulligan: Mulligan;
  readonly #seen: Map<string, { readonly mark: string; readonly runs: number }> = new Map();

  constructor(mulligan: Mulligan) {
    this.#mulligan = mulligan;
  }

  async look(): Promise<Look> {
    const jobs = (await this.#mulligan.jobs.list({ limit: MOST_JOBS })).reverse();
    const ended = (await Promise.all(jobs.map((job) => this.#newRuns(job)))).flat();
    ended.sort((a, b) => a.record.endedAt - b.record.endedAt);
    return { jobs, ended, done: jobs.every(({ state }) => isTerminal(state)) };
  }

  async #newRuns(job: Job): Promise<{ job: Job; record: RunRecord }[]> {
    const before = this.#seen.get(job.id);
    const mark = `${job.state} ${job.runs}`;
    if (before?.mark === mark || job.runs === 0) return [];
    const runs = await this.#mulligan.jobs.runs(job.id);
    this.#seen.set(job.id, { mark, runs: runs.length });
    return runs.slice(before?.runs ?? 0).map((record) => ({ job, record }));
  }
}
