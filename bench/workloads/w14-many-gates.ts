import { chunks, percentile, rotate, sleep, wall } from '../harness/measure.ts';
import type { OpenPeer } from '../harness/peer.ts';
import { type Metric, jobs as numbered, type Stage, type Workload } from '../harness/workload.ts';

/** How many jobs a claim takes, and how many claims of that size are timed in a round. */
const SIZES = [
  { limit: 1, claims: 300 },
  { limit: 10, claims: 300 },
  { limit: 100, claims: 100 },
];
const WARM_CLAIMS = 5;
const WORK_MS = 10_000;
const WINDOW_MS = 1_000;
/** A gate that has been quiet for this long may be forgotten (QUIET_MS of the gates, and a little more). */
const QUIET_MS = 61_000;

export const w14: Workload = {
  id: 'W14',
  title: 'Many gates',
  what:
    '1,000,000 jobs wait behind 100,000 gates of one parent (50,000 and 5,000 in a quick run), each of which has seen a failure. In one queue a tenth of the ' +
    'gates is open, in the other none. Claims through the store contract, in turn on both; the claimed jobs stay claimed. Then one worker process works ' +
    'on each for 10 s, in turn: runs per second, and probes, on average and in the busiest second. Then, in a queue of its own, 100,000 jobs with as many keys ' +
    '(2,000 in a quick run) that strangers chose: each is refused once and completes; rows that are left when the gates have been quiet for a minute and ' +
    'everything is pruned. Checked: claims are filled, and take no job behind an open gate.',
  peers: ['mulligan-sqlite', 'mulligan-postgres'],
  ownRounds: true,
  notQuick: 'filling takes minutes per store, and forgetting one more',
  metrics: [
    ...SIZES.flatMap(({ limit }) =>
      [50, 99].flatMap((part): Metric[] => [
        { key: `none${limit}-${part}`, title: `claim of ${limit}, none open, p${part}`, unit: 'ms', better: 'lower' },
        {
          key: `open${limit}-${part}`,
          title: `claim of ${limit}, a tenth open, p${part}`,
          unit: 'ms',
          better: 'lower',
        },
        {
          key: `ratio${limit}-${part}`,
          title: `claim of ${limit}, open to none, p${part}`,
          unit: 'x',
          better: 'lower',
        },
      ]),
    ),
    { key: 'noneRuns', title: 'runs, none open', unit: '/s', better: 'higher' },
    { key: 'openRuns', title: 'runs, a tenth open', unit: '/s', better: 'higher' },
    { key: 'runsRatio', title: 'runs, open to none', unit: 'x', better: 'higher' },
    { key: 'probes', title: 'probes', unit: '/s', better: 'neither' },
    { key: 'probesMost', title: 'probes in the busiest second', unit: '', better: 'lower' },
    { key: 'rowsFlood', title: 'rows of gates after the flood', unit: '', better: 'neither' },
    { key: 'rowsGates', title: 'rows of gates left', unit: '', better: 'lower' },
    { key: 'rowsPartitions', title: 'rows of partitions left', unit: '', better: 'lower' },
    { key: 'pruneCalls', title: 'calls of prune', unit: '', better: 'lower' },
  ],
  async run(stage) {
    const gated = stage.guarded('soft');
    const jobs = stage.size(1_000_000, 50_000);
    const gates = stage.size(100_000, 5_000);
    const both = [
      { key: 'none', queue: await fill(gated, 'none', jobs, gates, 0) },
      { key: 'open', queue: await fill(gated, 'open', jobs, gates, gates / 10) },
    ];
    for (const { limit, claims } of SIZES) await timeClaims(stage, both, limit, stage.size(claims, 50));
    for (let round = 0; round < stage.size(2, 1); round++) {
      const rates: Record<string, number> = {};
      for (const { key, queue } of rotate(both, round)) {
        const { perSecond, probes } = await work(stage, gated, queue, key);
        rates[key] = perSecond;
        stage.set(`${key}Runs`, perSecond);
        if (key !== 'open') continue;
        stage.set('probes', (probes.length * 1_000) / WORK_MS);
        stage.set('probesMost', mostWithin(probes, WINDOW_MS));
      }
      stage.set('runsRatio', (rates.open as number) / (rates.none as number));
    }
    await flood(stage, gated);
    await gated.close();
  },
};

async function fill(stage: Stage, part: string, jobs: number, gates: number, open: number): Promise<OpenPeer> {
  const queue = await stage.open(part);
  if (queue.gates === undefined) throw new Error('it has no gates');
  stage.say(`filling ${jobs} jobs behind ${gates} gates, ${open} of them open`);
  const startedAt = wall();
  await (await queue.gates()).fill(jobs, gates, open);
  await queue.settleDown(true);
  stage.say(`filled in ${Math.round((wall() - startedAt) / 1_000)} s`);
  return queue;
}

interface Part {
  readonly key: string;
  readonly queue: OpenPeer;
}

async function timeClaims(stage: Stage, both: readonly Part[], limit: number, claims: number): Promise<void> {
  const times: Record<string, number[]> = { none: [], open: [] };
  const gates = await Promise.all(both.map(async ({ key, queue }) => ({ key, gated: await queue.gates?.() })));
  for (let n = 0; n < claims + WARM_CLAIMS; n++) {
    for (const { key, gated } of rotate(gates, n)) {
      const tookMs = (await gated?.claim(limit)) ?? Number.NaN;
      if (n >= WARM_CLAIMS) times[key]?.push(tookMs);
    }
  }
  for (const part of [50, 99]) {
    const [none, open] = [percentile(times.none ?? [], part / 100), percentile(times.open ?? [], part / 100)];
    stage.set(`none${limit}-${part}`, none);
    stage.set(`open${limit}-${part}`, open);
    stage.set(`ratio${limit}-${part}`, open / none);
    stage.say(`claims of ${limit}, p${part}: ${none.toFixed(2)} ms and ${open.toFixed(2)} ms`);
  }
}

/** A worker on a part of the jobs: how many runs it made per second, and when a probe was refused. */
async function work(
  stage: Stage,
  gated: Stage,
  queue: OpenPeer,
  part: string,
): Promise<{ readonly perSecond: number; readonly probes: readonly number[] }> {
  const crew = await gated.crew(1, queue, { jobs: 1 }, part);
  const startedAt = wall();
  await crew.go();
  const probes: number[] = [];
  while (wall() < startedAt + WORK_MS) {
    await sleep(5);
    for (let left = crew.progress().refused - probes.length; left > 0; left--) probes.push(wall());
  }
  const perSecond = (crew.progress().runs * 1_000) / (wall() - startedAt);
  await crew.stop();
  stage.say(`${part}: ${Math.round(perSecond)} runs per second, ${probes.length} probes`);
  return { perSecond, probes };
}

function mostWithin(times: readonly number[], spanMs: number): number {
  return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + spanMs).length));
}

async function flood(stage: Stage, gated: Stage): Promise<void> {
  const count = stage.size(100_000, 2_000);
  const queue = await gated.open('flood');
  const gates = await queue.gates?.();
  const before = await gates?.rows();
  stage.say(`${count} jobs with as many keys`);
  for (const some of chunks(numbered(count, 'flaky'), 1_000)) await queue.enqueueBulk(some);
  const crew = await gated.crew(1, queue, { jobs: count }, 'flood');
  await crew.go();
  const all = await crew.until(({ completed }) => completed >= count, wall() + stage.size(600_000, 60_000));
  if (!all) stage.note(`${crew.progress().completed} of ${count} jobs with keys of their own had completed`);
  await sleep(500);
  const flooded = await gates?.rows();
  await crew.stop();
  stage.set('rowsFlood', flooded?.gates ?? Number.NaN);
  stage.say(`rows after the flood: ${JSON.stringify(flooded)}; waiting until the gates have been quiet`);
  await sleep(QUIET_MS);
  const startedAt = wall();
  stage.set('pruneCalls', (await gates?.pruneAll()) ?? Number.NaN);
  const left = await gates?.rows();
  stage.set('rowsGates', left?.gates ?? Number.NaN);
  stage.set('rowsPartitions', left?.partitions ?? Number.NaN);
  const tables = Object.entries(left ?? {}).map(([table, rows]) => `${table} ${rows} (${before?.[table]} before)`);
  stage.note(`rows left ${Math.round((wall() - startedAt) / 1_000)} s after pruning began: ${tables.join(', ')}`);
}
