import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { defineJob, Mulligan } from '../src/index.ts';
import { inFolder, loopDelayP99Ms, median, rate } from './measure.ts';
import { Raw } from './raw.ts';

/*
 * Mulligan on SQLite beside the raw limit of node:sqlite, in one run: rounds alternate between the two, so that a
 * noisy machine disturbs both alike, and the medians of the rounds are compared.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    jobs: { type: 'string', default: '50000' },
    backlog: { type: 'string', default: '1000000' },
    json: { type: 'boolean', default: false },
  },
});
const rounds = positive(options.rounds, '--rounds');
const count = positive(options.jobs, '--jobs');
const backlog = positive(options.backlog, '--backlog');

const RAW_BATCH = 500;
const CONCURRENCY = 100;
const CALLERS = 64;
const SINGLE_PART = 5;

const noop = defineJob<{ n: number }>({ name: 'noop', run: () => {} });

interface Round {
  rawEnqueue: number;
  rawSingle: number;
  rawDrain: number;
  enqueue: number;
  single: number;
  drain: number;
  drainWithBacklog: number;
  loopDelayMs: number;
}

function positive(text: string, flag: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  console.error(`${flag}: expected a whole number above 0, came ${JSON.stringify(text)}`);
  process.exit(2);
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

function inputs(size: number): { n: number }[] {
  return Array.from({ length: size }, (_, n) => ({ n }));
}

/** Jobs per second from the start of a worker until `size` jobs have completed, each exactly once. */
async function drain(mulligan: Mulligan, size: number): Promise<number> {
  const finished = new Set<string>();
  const done = Promise.withResolvers<void>();
  const off = mulligan.on('completed', ({ id }) => {
    if (finished.has(id)) done.reject(new Error(`job ${id} completed twice`));
    if (finished.add(id).size === size) done.resolve();
  });
  let worker: ReturnType<Mulligan['work']> | undefined;
  const perSecond = await rate(size, async () => {
    worker = mulligan.work({ concurrency: CONCURRENCY });
    await done.promise;
  });
  off();
  await worker?.stop();
  return perSecond;
}

async function single(mulligan: Mulligan, size: number): Promise<void> {
  let left = size;
  const caller = async (): Promise<void> => {
    while (left-- > 0) await mulligan.enqueue(noop, { n: left });
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

/** One file that keeps its backlog over all rounds; draining works beside it. */
async function withBacklog<T>(folder: string, use: (mulligan: Mulligan) => Promise<T>): Promise<T> {
  await using mulligan = await Mulligan.open(`sqlite:${join(folder, 'backlog.db')}`, { jobs: [noop] });
  const { states } = await mulligan.stats();
  for (let waiting = states.ready; waiting < backlog; waiting += 50_000) {
    await mulligan.enqueueMany(noop, inputs(Math.min(50_000, backlog - waiting)), { priority: 9 });
    say(`backlog: ${Math.min(backlog, waiting + 50_000)} of ${backlog} jobs wait`);
  }
  return await use(mulligan);
}

async function rawRound(folder: string): Promise<Pick<Round, 'rawEnqueue' | 'rawSingle' | 'rawDrain'>> {
  const raw = new Raw(join(folder, 'raw.db'));
  const size = Math.ceil(count / SINGLE_PART / 5);
  const rawEnqueue = await rate(count, () => raw.enqueue(count, 1_000));
  const rawDrain = await rate(count, () => void raw.drain(RAW_BATCH));
  const rawSingle = await rate(size, () => raw.enqueue(size, 1));
  raw.close();
  return { rawEnqueue, rawSingle, rawDrain };
}

async function ownRound(folder: string): Promise<Pick<Round, 'enqueue' | 'single' | 'drain' | 'loopDelayMs'>> {
  await using mulligan = await Mulligan.open(`sqlite:${join(folder, 'own.db')}`, { jobs: [noop] });
  const size = Math.ceil(count / SINGLE_PART);
  const jobs = inputs(count);
  const enqueue = await rate(count, async () => void (await mulligan.enqueueMany(noop, jobs)));
  let perSecond = 0;
  const loopDelayMs = await loopDelayP99Ms(async () => {
    perSecond = await drain(mulligan, count);
  });
  const singles = await rate(size, () => single(mulligan, size));
  return { enqueue, single: singles, drain: perSecond, loopDelayMs };
}

/** The waiting jobs have the lowest priority, so what is drained is claimed from before them. */
async function backlogRound(mulligan: Mulligan): Promise<Pick<Round, 'drainWithBacklog'>> {
  await mulligan.enqueueMany(noop, inputs(count), { priority: 0 });
  return { drainWithBacklog: await drain(mulligan, count) };
}

const results: Round[] = [];
await inFolder(async (shared) => {
  await withBacklog(shared, async (mulligan) => {
    for (let round = 1; round <= rounds; round++) {
      const raw = await inFolder(rawRound);
      const own = await inFolder(ownRound);
      const behind = await backlogRound(mulligan);
      results.push({ ...raw, ...own, ...behind });
      say(`round ${round} of ${rounds}: drain ${Math.round(own.drain)}/s, raw ${Math.round(raw.rawDrain)}/s`);
    }
  });
});

const mid = (field: keyof Round): number => median(results.map((round) => round[field]));
const summary = {
  rounds,
  jobs: count,
  backlog,
  perSecond: {
    enqueueBulk: Math.round(mid('enqueue')),
    rawEnqueueBulk: Math.round(mid('rawEnqueue')),
    enqueueSingle: Math.round(mid('single')),
    rawEnqueueSingle: Math.round(mid('rawSingle')),
    drain: Math.round(mid('drain')),
    rawDrain: Math.round(mid('rawDrain')),
    drainWithBacklog: Math.round(mid('drainWithBacklog')),
  },
  ratios: {
    enqueueBulkToRaw: ratio('enqueue', 'rawEnqueue'),
    enqueueSingleToRaw: ratio('single', 'rawSingle'),
    drainToRaw: ratio('drain', 'rawDrain'),
    drainWithBacklogToWithout: ratio('drainWithBacklog', 'drain'),
  },
  loopDelayP99Ms: Number(mid('loopDelayMs').toFixed(1)),
};

function ratio(a: keyof Round, b: keyof Round): number {
  return Number((mid(a) / mid(b)).toFixed(2));
}

if (options.json) console.log(JSON.stringify(summary));
else {
  const { perSecond, ratios } = summary;
  console.log(`SQLite, synchronous=FULL; ${count} jobs, medians of ${rounds} rounds, jobs per second`);
  const row = (what: string, own: number, other: string, limit: number, part: number): void =>
    console.log(
      `${what.padEnd(34)} ${String(own).padStart(8)}   ${other} ${String(limit).padStart(8)}   ratio ${part}`,
    );
  row('enqueue by 1,000', perSecond.enqueueBulk, 'raw', perSecond.rawEnqueueBulk, ratios.enqueueBulkToRaw);
  row(
    `enqueue one by one, ${CALLERS} in flight`,
    perSecond.enqueueSingle,
    'raw',
    perSecond.rawEnqueueSingle,
    ratios.enqueueSingleToRaw,
  );
  row(`drain, concurrency ${CONCURRENCY}`, perSecond.drain, 'raw', perSecond.rawDrain, ratios.drainToRaw);
  row(
    `drain before ${backlog} waiting`,
    perSecond.drainWithBacklog,
    'own',
    perSecond.drain,
    ratios.drainWithBacklogToWithout,
  );
  console.log(`event-loop delay while draining, p99: ${summary.loopDelayP99Ms} ms`);
}
