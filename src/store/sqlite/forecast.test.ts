import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { withStore } from '../../../test/support/sqlite-file.ts';
import { newJobs } from '../conformance/builders.ts';
import { forecastReads } from './forecast.ts';

it('a forecast searches indexes of jobs, and sorts none', () =>
  withStore(async ({ store, path }) => {
    await store.enqueue(newJobs(3, { delayMs: 1_000 }));
    using db = new DatabaseSync(path, { readOnly: true });
    for (const sql of forecastReads) {
      const plan = (db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]).map(({ detail }) => detail);
      const ofJobs = plan.filter((detail) => /\bjobs\b/.test(detail));
      expect(ofJobs).toHaveLength(1);
      // What arrived last is read by the order of acceptance, which is that of the table, as far as its limit.
      expect(ofJobs[0]).toMatch(
        /ORDER BY seq DESC LIMIT/.test(sql)
          ? /^SCAN jobs$/
          : /^(SEARCH jobs USING .*INDEX jobs_|SCAN jobs USING INDEX jobs_running)/,
      );
      expect(plan.filter((detail) => /FOR ORDER BY/.test(detail))).toEqual([]);
    }
  }));
