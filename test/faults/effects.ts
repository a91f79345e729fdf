import { expect } from 'vitest';
import { type Mulligan, StoreBusyError, StoreUnavailableError } from '../../src/index.ts';
import { writesOnce } from '../processes/jobs.ts';
import { runSql } from '../support/postgres-schema.ts';
import { hardy } from './load.ts';

/** What jobs of the kind `writesOnce` leave behind in their database: one row each, whatever happened on the way. */
export class Effects {
  readonly acknowledged: string[] = [];
  readonly #url: string;
  readonly #mulligan: Mulligan;

  /** `seenAt` is where they are looked for afterwards, when that is another server. */
  static async open(url: string, mulligan: Mulligan, seenAt = url): Promise<Effects> {
    await runSql(url, 'CREATE TABLE public.effects (job uuid NOT NULL, run int NOT NULL)');
    return new Effects(seenAt, mulligan);
  }

  private constructor(url: string, mulligan: Mulligan) {
    this.#url = url;
    this.#mulligan = mulligan;
  }

  async enqueue(count: number, ms: number): Promise<void> {
    try {
      const jobs = await this.#mulligan.enqueueMany(
        writesOnce,
        Array(count)
          .fill({ ms })
          .map((input) => ({ input })),
        hardy,
      );
      this.acknowledged.push(...jobs.map(({ id }) => id));
    } catch (error) {
      if (!(error instanceof StoreUnavailableError || error instanceof StoreBusyError)) throw error;
    }
  }

  /** Every job of the kind has completed, and its one effect is that of the run that completed it. */
  async expectOnceEach(): Promise<void> {
    const jobs = await this.#mulligan.jobs.list({ name: writesOnce.name, limit: 5_000 });
    const rows = (await runSql(this.#url, 'SELECT job, run FROM public.effects')) as { job: string; run: number }[];
    const written = rows.map(({ job, run }) => `${job} ${run}`).sort();
    expect(jobs.filter(({ state }) => state !== 'completed')).toEqual([]);
    expect(written).toEqual(jobs.map(({ id, runs }) => `${id} ${runs}`).sort());
    const ids = new Set(jobs.map(({ id }) => id));
    expect(this.acknowledged.filter((id) => !ids.has(id))).toEqual([]);
    expect(this.acknowledged.length).toBeGreaterThan(0);
  }
}
