import { percentile, sleep, wall } from '../harness/measure.ts';
import type { OpenPeer } from '../harness/peer.ts';
import { arrive, CONCURRENCY, type Stage, type Workload } from '../harness/workload.ts';
import { startStorm } from './w5-starvation.ts';

const FRESH_PER_SECOND = 50;
const ONCE_PER_SECOND = 15;
const SECONDS = 20;

export const w11: Workload = {
  id: 'W11',
  title: 'Healthy retries beside a retry storm',
  what:
    'Jobs of one name fail again and again, 50 ms after each failure, in one worker process with concurrency ' +
    `${CONCURRENCY}. Beside them jobs of another name arrive, ${ONCE_PER_SECOND} per second, that fail once and succeed after a ` +
    `second, and fresh jobs, ${FRESH_PER_SECOND} per second. How long after its due time a second attempt starts (by the ` +
    'ledger), and how long fresh jobs wait, with the storm and without it. Checked: each second attempt ran.',
  peers: ['mulligan-memory', 'mulligan-sqlite', 'mulligan-postgres'],
  metrics: [
    { key: 'calmRetry50', title: 'second attempts without the storm, p50', unit: 'ms', better: 'lower' },
    { key: 'calmRetry99', title: 'second attempts without the storm, p99', unit: 'ms', better: 'lower' },
    { key: 'calmFresh50', title: 'fresh jobs without the storm, p50', unit: 'ms', better: 'lower' },
    { key: 'calmFresh99', title: 'fresh jobs without the storm, p99', unit: 'ms', better: 'lower' },
    { key: 'stormRetry50', title: 'second attempts with the storm, p50', unit: 'ms', better: 'lower' },
    { key: 'stormRetry99', title: 'second attempts with the storm, p99', unit: 'ms', better: 'lower' },
    { key: 'stormFresh50', title: 'fresh jobs with the storm, p50', unit: 'ms', better: 'lower' },
    { key: 'stormFresh99', title: 'fresh jobs with the storm, p99', unit: 'ms', better: 'lower' },
  ],
  async run(stage) {
    const seconds = stage.size(SECONDS, 2);
    const fresh = seconds * FRESH_PER_SECOND;
    const once = seconds * ONCE_PER_SECOND;
    const storm = stage.size(20_000, 1_000);
    const queue = await stage.open();
    await measure(stage, queue, 'calm', { fresh, once, storm: 0 });
    await queue.reset();
    await measure(stage, queue, 'storm', { fresh, once, storm });
  },
};

interface Counts {
  readonly fresh: number;
  readonly once: number;
  readonly storm: number;
}

async function measure(stage: Stage, queue: OpenPeer, key: 'calm' | 'storm', counts: Counts): Promise<void> {
  const { fresh, once, storm } = counts;
  const crew = await startStorm(stage, queue, storm, fresh + once);
  if (crew === null) return;
  const before = { at: wall(), runs: crew.progress().runs };
  await Promise.all([
    arrive(queue, fresh, FRESH_PER_SECOND),
    arrive(queue, once, ONCE_PER_SECOND, { kind: 'once', from: fresh }),
  ]);
  const patience = wall() + stage.size(60_000, 10_000);
  const all = await crew.until(({ completed }) => completed >= fresh + once, patience);
  if (!all) stage.note(`${crew.progress().completed} of ${fresh + once} jobs had completed at the end`);
  if (storm > 0) {
    const perSecond = (1_000 * (crew.progress().runs - before.runs)) / (wall() - before.at);
    stage.note(
      `all jobs together ran ${Math.round(perSecond).toLocaleString('en-US')} times a second during the storm`,
    );
  }
  // The last handlers have ended; their ends are recorded a moment later.
  let late = (await queue.secondAttempts?.('once')) ?? [];
  while (all && late.length < once && wall() < patience) {
    await sleep(50);
    late = (await queue.secondAttempts?.('once')) ?? [];
  }
  const reports = await crew.dismiss();
  const waits = reports.flatMap((report) => report.waits);
  if (all && late.length !== once)
    throw new Error(`wrong: ${late.length} of ${once} second attempts are on the ledger`);
  for (const [name, part] of [
    ['50', 0.5],
    ['99', 0.99],
  ] as const) {
    stage.set(`${key}Retry${name}`, percentile(late, part));
    stage.set(`${key}Fresh${name}`, percentile(waits, part));
  }
}
