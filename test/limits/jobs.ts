import { openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineJob } from '../../src/index.ts';

/** Fewer than the fleet has places, so that the total is what bounds it. */
export const TOTAL = 40;
export const CONCURRENCY = 2;
/** With a burst of two, a claim that comes late by less than a space costs nothing; of evenly spread starts it would. */
export const RATE = { limit: 90, perMs: 10_000, burst: 2 } as const;

const soon = { backoff: { kind: 'fixed', base: 20 }, jitter: 'none', maxAttempts: 1_000, maxCrashes: 1_000 } as const;
const files = new Map<string, number>();

/** Each line is one write to a file that is opened for appending, so lines of several processes do not mix. */
function note(file: string, line: readonly (string | number | bigint)[]): void {
  const fd = files.get(file) ?? openSync(file, 'a');
  files.set(file, fd);
  writeSync(fd, `${line.join(' ')}\n`);
}

/** It says when it starts and ends, by the monotonic clock that all processes of a machine share. */
export const counted = defineJob<{ file: string; key: string; ms: number }>({
  name: 'counted',
  retry: soon,
  limit: { name: 'per-key', key: ({ key }) => key, concurrency: CONCURRENCY, total: TOTAL },
  async run({ file, key, ms }, { job, run }) {
    note(file, ['start', job.id, run, process.pid, process.hrtime.bigint(), key]);
    await sleep(ms);
    note(file, ['end', job.id, run, process.pid, process.hrtime.bigint(), key]);
  },
});

export const rated = defineJob<{ key: string }>({
  name: 'rated',
  retry: soon,
  limit: { name: 'per-rate', key: ({ key }) => key, rate: { limit: RATE.limit, per: RATE.perMs, burst: RATE.burst } },
  run() {},
});

export const limitJobs = [counted, rated];
