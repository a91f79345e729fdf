import { describe, expect, it } from 'vitest';
import type { Selection } from './bulk/selection.ts';
import { defineJob } from './definition.ts';
import { ConfigError } from './errors.ts';
import { states } from './job.ts';
import { Mulligan } from './mulligan.ts';
import type { ListOptions, RedriveOptions } from './operate.ts';
import { Unrecoverable } from './retry/control-errors.ts';
import { MemoryStore } from './store/memory/store.ts';
import type { ChangeAnswer, ChangeRequest } from './store/store.ts';
import { type TestQueue, testQueue } from './testing/queue.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

const retry = { maxAttempts: 2, backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' } as const;

/** Ends as its input says. */
const job = defineJob<'complete' | 'exhaust' | 'give up'>({
  name: 'job',
  retry,
  run(how) {
    if (how === 'give up') throw new Unrecoverable('never');
    if (how === 'exhaust') throw new Error('no');
  },
});
const other = defineJob<null>({
  name: 'other',
  queue: 'elsewhere',
  retry,
  run() {
    throw new Unrecoverable('never');
  },
});

function queue(): Promise<TestQueue> {
  return testQueue({ jobs: [job, other], work: { queues: ['default', 'elsewhere'] } });
}

async function complaint(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => new Error('no complaint'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ConfigError);
  return (error as Error).message;
}

const ids = (jobs: readonly { readonly id: string }[]): string[] => jobs.map(({ id }) => id);

/** A job that died of what its input says. */
async function bury(mulligan: TestQueue, how: 'exhaust' | 'give up', options = {}): Promise<string> {
  const { id } = await mulligan.mulligan.enqueue(job, how, options);
  await mulligan.drain();
  return id;
}

describe('a job', () => {
  it('is found by its id, and null stands for none', async () => {
    await using one = await queue();
    const { id } = await one.mulligan.enqueue(job, 'complete', { key: 'k', priority: 3, delay: '1h' });
    expect(await one.mulligan.jobs.get(id)).toMatchObject({
      id,
      name: 'job',
      queue: 'default',
      state: 'scheduled',
      lane: 'fresh',
      priority: 3,
      payload: 'complete',
      key: 'k',
      runs: 0,
      attempts: 0,
      enqueuedAt: one.clock.now(),
      dueAt: one.clock.now() + 3_600_000,
      lastError: null,
    });
    expect(await one.mulligan.jobs.get('unheard of')).toBeNull();
    expect(await one.mulligan.jobs.runs('unheard of')).toEqual([]);
  });

  it('keeps its ledger, oldest run first', async () => {
    await using one = await queue();
    const id = await bury(one, 'exhaust');
    const runs = await one.mulligan.jobs.runs(id);
    expect(runs.map(({ run, decision }) => [run, decision.kind])).toEqual([
      [1, 'retry'],
      [2, 'dead'],
    ]);
  });

  it.each<[string, (mulligan: Mulligan) => Promise<unknown>, string]>([
    ['get', (m) => m.jobs.get(''), 'jobs.get: id: expected a text of 1 to 200 characters'],
    ['get', (m) => m.jobs.get(undefined as unknown as string), 'jobs.get: id: expected a text'],
    ['runs', (m) => m.jobs.runs(5 as unknown as string), 'jobs.runs: id: expected a text'],
    ['cancel', (m) => m.jobs.cancel(['a'] as unknown as string), 'jobs.cancel: id: expected a text'],
  ])('is not asked for by an id that is none (%s)', async (_, call, message) => {
    await using one = await queue();
    expect(await complaint(call(one.mulligan))).toContain(message);
  });
});

describe('a list of jobs', () => {
  it('lists the newest first, 50 by default, and continues after any of them', async () => {
    await using one = await queue();
    const all = ids(
      await one.mulligan.enqueueMany(
        job,
        Array(120)
          .fill('complete')
          .map((input) => ({ input })),
        { delay: '1h' },
      ),
    ).toReversed();
    const first = await one.mulligan.jobs.list();
    expect(ids(first)).toEqual(all.slice(0, 50));
    const second = await one.mulligan.jobs.list({ after: first.at(-1)?.id as string, limit: 60 });
    expect(ids(second)).toEqual(all.slice(50, 110));
    expect(ids(await one.mulligan.jobs.list({ after: all[109] as string }))).toEqual(all.slice(110));
    expect(await one.mulligan.jobs.list({ after: 'unheard of' })).toEqual([]);
  });

  it('can be narrowed by state, queue, name and key', async () => {
    await using one = await queue();
    const dead = await bury(one, 'give up', { key: 'a' });
    const elsewhere = (await one.mulligan.enqueue(other, null, { delay: '1h' })).id;
    const keyed = (await one.mulligan.enqueue(job, 'complete', { delay: '1h', key: 'b' })).id;
    const list = async (options: ListOptions) => ids(await one.mulligan.jobs.list(options));
    expect(await list({ state: 'dead' })).toEqual([dead]);
    expect(await list({ state: 'scheduled' })).toEqual([keyed, elsewhere]);
    expect(await list({ queue: 'elsewhere' })).toEqual([elsewhere]);
    expect(await list({ name: 'job' })).toEqual([keyed, dead]);
    expect(await list({ key: 'b' })).toEqual([keyed]);
    expect(await list({ name: 'job', state: 'scheduled', queue: 'default' })).toEqual([keyed]);
    expect(await list({ name: 'other', queue: 'default' })).toEqual([]);
    const undefinedIsAbsent = { name: undefined, state: undefined } as unknown as ListOptions;
    expect(await list(undefinedIsAbsent)).toHaveLength(3);
  });

  it.each<[string, unknown, string]>([
    ['a misspelt option', { sate: 'dead' }, 'jobs.list: there is no option "sate". Did you mean state?'],
    [
      'a state that does not exist',
      { state: 'failed' },
      `jobs.list: state: expected one of ${states.join(', ')}, got "failed".`,
    ],
    ['a misspelt state', { state: 'complete' }, 'Did you mean completed?'],
    ['a limit of 0', { limit: 0 }, 'jobs.list: limit: expected a whole number from 1 to 10000, got 0.'],
    [
      'a limit beyond 10,000',
      { limit: 10_001 },
      'jobs.list: limit: expected a whole number from 1 to 10000, got 10001.',
    ],
    ['an empty queue', { queue: '' }, 'jobs.list: queue: expected a text'],
    ['attempts that are no number', { attempts: 'keep' }, 'or { min, max }, got "keep".'],
    ['no object', 'dead', 'jobs.list: expected an object with options, got "dead".'],
  ])('refuses %s', async (_, options, message) => {
    await using one = await queue();
    expect(await complaint(one.mulligan.jobs.list(options as ListOptions))).toContain(message);
  });
});

describe('cancelling', () => {
  it('ends a waiting job at once, and reports what happened to every other', async () => {
    await using one = await queue();
    const { id } = await one.mulligan.enqueue(job, 'complete', { delay: '1h' });
    expect(await one.mulligan.jobs.cancel(id)).toBe('cancelled');
    expect(await one.mulligan.jobs.cancel(id)).toBe('already-ended');
    expect(await one.mulligan.jobs.cancel('unheard of')).toBe('not-found');
    await one.drain();
    expect(await one.mulligan.jobs.get(id)).toMatchObject({ state: 'cancelled', runs: 0 });
  });

  it('ends a job that waits for its retry', async () => {
    await using one = await queue();
    const { id } = await one.mulligan.enqueue(job, 'exhaust');
    await one.clock.advance(0);
    expect(await one.mulligan.jobs.get(id)).toMatchObject({ state: 'retrying' });
    expect(await one.mulligan.jobs.cancel(id)).toBe('cancelled');
    await one.drain();
    expect(await one.mulligan.jobs.get(id)).toMatchObject({ state: 'cancelled', runs: 1 });
  });
});

describe('dead jobs', () => {
  it('are listed, and only they', async () => {
    await using one = await queue();
    await one.mulligan.enqueue(job, 'complete');
    const first = await bury(one, 'give up');
    const second = await bury(one, 'exhaust');
    expect(ids(await one.mulligan.dead.list())).toEqual([second, first]);
    expect(ids(await one.mulligan.dead.list({ limit: 1 }))).toEqual([second]);
    expect(await one.mulligan.dead.list({ name: 'other' })).toEqual([]);
    const asked = one.mulligan.dead.list({ state: 'ready' } as ListOptions);
    expect(await complaint(asked)).toContain('dead.list: state: expected no state');
  });

  it('are redriven with all their attempts, and keep their ledger', async () => {
    await using one = await queue();
    const id = await bury(one, 'exhaust');
    await one.mulligan.queues.pause('default');
    expect(await one.mulligan.dead.redrive({ ids: [id] })).toMatchObject({
      count: 1,
      ids: [id],
      skipped: [],
      others: [],
    });
    expect(await one.mulligan.jobs.get(id)).toMatchObject({ state: 'ready', lane: 'redrive', attempts: 0, runs: 2 });
    await one.mulligan.queues.resume('default');
    await one.drain();
    expect(await one.mulligan.jobs.get(id)).toMatchObject({
      state: 'dead',
      deadReason: 'exhausted',
      attempts: 2,
      runs: 4,
    });
    expect((await one.mulligan.jobs.runs(id)).map(({ run, attempt }) => [run, attempt])).toEqual([
      [1, 1],
      [2, 2],
      [3, 1],
      [4, 2],
    ]);
  });

  it('are redriven with the attempts that were left when `keepAttempts` is true', async () => {
    await using one = await queue();
    const [gaveUp, exhausted] = [await bury(one, 'give up'), await bury(one, 'exhaust')];
    await one.mulligan.queues.pause('default');
    expect(await one.mulligan.dead.redrive({ name: 'job', keepAttempts: true })).toMatchObject({
      ids: [gaveUp],
      skipped: [{ id: exhausted, why: 'nothing-left' }],
    });
    expect(await one.mulligan.jobs.get(gaveUp)).toMatchObject({ state: 'ready', attempts: 1 });
    await one.mulligan.queues.resume('default');
    await one.drain();
    expect(await one.mulligan.jobs.get(gaveUp)).toMatchObject({ state: 'dead', attempts: 2, runs: 2 });
  });

  it('are not changed by a dry run, which counts them and shows a few', async () => {
    await using one = await queue();
    const id = await bury(one, 'exhaust');
    const keyed = await bury(one, 'exhaust', { key: 'k' });
    await one.mulligan.enqueue(job, 'complete', { key: 'k', delay: '1h' });
    const would = await one.mulligan.dead.redrive({ queue: 'default', dryRun: true });
    expect(would).toMatchObject({ dryRun: true, count: 2, isExact: true, ids: [], operation: null });
    expect(ids(would.samples)).toEqual([keyed, id]);
    expect((await one.mulligan.stats()).states.dead).toBe(2);
    const done = await one.mulligan.dead.redrive({ queue: 'default' });
    expect(done).toMatchObject({ count: 1, ids: [id], skipped: [{ id: keyed, why: 'key-taken' }] });
    expect((await one.mulligan.stats()).states.dead).toBe(1);
  });

  it('can be selected by id, name, queue and reason', async () => {
    await using one = await queue();
    const exhausted = await bury(one, 'exhaust');
    const gaveUp = [await bury(one, 'give up'), await bury(one, 'give up')];
    const { id: elsewhere } = await one.mulligan.enqueue(other, null);
    await one.drain();
    const would = async (selection: RedriveOptions) =>
      ids((await one.mulligan.dead.redrive({ ...selection, dryRun: true })).samples).toReversed();
    expect(await would({ reason: 'exhausted' })).toEqual([exhausted]);
    expect(await would({ reason: 'unrecoverable' })).toEqual([...gaveUp, elsewhere]);
    expect(await would({ reason: 'unrecoverable', limit: 1 })).toHaveLength(1);
    expect(await would({ queue: 'elsewhere' })).toEqual([elsewhere]);
    expect(await would({ name: 'job', reason: 'unrecoverable' })).toEqual(gaveUp);
    expect(await would({ ids: [gaveUp[1] as string, 'unheard of'] })).toEqual([gaveUp[1]]);
    expect(await would({ ids: [] })).toEqual([]);
  });

  it('are redriven and discarded a few hundred at a time', async () => {
    const clock = new VirtualClock();
    const parts: number[] = [];
    class Watched extends MemoryStore {
      override async change(request: ChangeRequest): Promise<ChangeAnswer> {
        const answer = await super.change(request);
        if (answer.ids.length > 0) parts.push(answer.ids.length);
        return answer;
      }
    }
    const mulligan = await Mulligan.open(new Watched({ clock }), { jobs: [other], clock, log: () => {} });
    mulligan.work({ concurrency: 100 });
    const made = ids(
      await mulligan.enqueueMany(
        other,
        Array(2_500)
          .fill(null)
          .map((input) => ({ input })),
      ),
    );
    await clock.advance(60_000);
    await mulligan.queues.pause('elsewhere');
    expect((await mulligan.dead.redrive({ name: 'other', limit: 500 })).ids).toHaveLength(500);
    const rest = await mulligan.dead.redrive({ name: 'other' });
    expect(rest.ids).toHaveLength(2_000);
    expect(rest.skipped).toEqual([]);
    expect(parts).toEqual([500, 500, 500, 500, 500]);
    await mulligan.queues.resume('elsewhere');
    await clock.advance(60_000);
    parts.length = 0;
    expect(await mulligan.dead.discard({ name: 'other', limit: 1_200 })).toMatchObject({ count: 1_200 });
    expect(await mulligan.dead.discard({ name: 'other' })).toMatchObject({ count: 1_300 });
    expect(parts).toEqual([500, 500, 200, 500, 500, 300]);
    expect(await mulligan.jobs.get(made[0] as string)).toBeNull();
  });

  it('are deleted with their ledger when they are discarded', async () => {
    await using one = await queue();
    const [gone, kept] = [await bury(one, 'give up'), await bury(one, 'exhaust')];
    expect(await one.mulligan.dead.discard({ reason: 'unrecoverable' })).toMatchObject({ count: 1, ids: [gone] });
    expect(await one.mulligan.jobs.get(gone)).toBeNull();
    expect(await one.mulligan.jobs.runs(gone)).toEqual([]);
    expect(await one.mulligan.jobs.get(kept)).toMatchObject({ state: 'dead' });
  });

  it.each<[string, unknown, string]>([
    [
      'everything',
      {},
      'expected at least one of ids, name, queue, state, reason, error, message, tag, key, since, until or attempts, got none.',
    ],
    [
      'only a limit',
      { limit: 5 },
      'expected at least one of ids, name, queue, state, reason, error, message, tag, key, since, until or attempts',
    ],
    ['nothing', undefined, 'expected an object with options, got undefined.'],
    ['a misspelt condition', { raeson: 'poison' }, 'there is no option "raeson". Did you mean reason?'],
    [
      'a reason there is not',
      { reason: 'poisoned' },
      'reason: expected one of exhausted, unrecoverable, deadline, poison, no-handler, runs, got "poisoned". Did you mean poison?',
    ],
    ['one id', { ids: 'a' }, 'ids: expected a list of job ids, got "a".'],
    ['an id that is none', { ids: ['a', 5] }, 'ids[1]: expected a text of 1 to 200 characters'],
    ['a limit of 0', { name: 'job', limit: 0 }, 'limit: expected a whole number of at least 1, got 0.'],
  ])('are left alone when %s is selected', async (_, selection, message) => {
    await using one = await queue();
    await bury(one, 'give up');
    const { dead } = one.mulligan;
    expect(await complaint(dead.redrive(selection as RedriveOptions))).toContain(message);
    expect(await complaint(dead.discard(selection as RedriveOptions))).toContain(message);
    expect(await dead.list()).toHaveLength(1);
  });

  it.each<[string, unknown, string]>([
    [
      'attempts that are kept or not',
      { name: 'job', keepAttempts: 'no' },
      'dead.redrive: keepAttempts: expected true or false, got "no".',
    ],
    [
      'a rate without a unit',
      { name: 'job', rate: '50' },
      `dead.redrive: rate: expected a rate above 0 such as '50/s', '300/m' or '1000/h', got "50".`,
    ],
    [
      'another payload for many',
      { name: 'job', edit: {} },
      'dead.redrive: edit: expected exactly one id in ids, got "none". Edit one job at a time.',
    ],
    [
      'a state that is not dead',
      { name: 'job', state: 'retrying' },
      'dead.redrive: state: expected no state, since only dead jobs are meant here, got "retrying". Use jobs.runNow for scheduled and retrying jobs, jobs.cancel for those that wait or run.',
    ],
    [
      'a dry run that is no yes or no',
      { name: 'job', dryRun: 'yes' },
      'dead.redrive: dryRun: expected true or false, got "yes".',
    ],
  ])('are not redriven with %s', async (_, options, message) => {
    await using one = await queue();
    await bury(one, 'give up');
    expect(await complaint(one.mulligan.dead.redrive(options as RedriveOptions))).toBe(message);
    expect(await one.mulligan.dead.list()).toHaveLength(1);
  });
});

describe('jobs that wait', () => {
  it.each([{}, { limit: 5 }, { dryRun: true }, { name: undefined }])(
    'are left alone when %j is selected',
    async (selection) => {
      await using one = await queue();
      const { id } = await one.mulligan.enqueue(job, 'complete', { delay: '1h' });
      const { jobs } = one.mulligan;
      const expected = 'expected at least one of ids, name, queue, state';
      expect(await complaint(jobs.cancel(selection as Selection))).toContain(`jobs.cancel: ${expected}`);
      expect(await complaint(jobs.runNow(selection as Selection))).toContain(`jobs.runNow: ${expected}`);
      expect(await jobs.get(id)).toMatchObject({ state: 'scheduled' });
    },
  );
});

describe('a queue', () => {
  it('that is paused gives out no job until it is resumed; others go on', async () => {
    await using one = await queue();
    await one.mulligan.queues.pause('default');
    const { id } = await one.mulligan.enqueue(job, 'complete');
    const { id: elsewhere } = await one.mulligan.enqueue(other, null);
    await one.clock.advance(60_000);
    expect(await one.mulligan.jobs.get(id)).toMatchObject({ state: 'ready', runs: 0 });
    expect(await one.mulligan.jobs.get(elsewhere)).toMatchObject({ state: 'dead' });
    expect(await one.mulligan.queues.list()).toEqual([
      { queue: 'default', paused: true },
      { queue: 'elsewhere', paused: false },
    ]);
    await one.mulligan.queues.resume('default');
    await one.clock.advance(0);
    expect(await one.mulligan.jobs.get(id)).toMatchObject({ state: 'completed' });
    expect(await one.mulligan.queues.list()).toContainEqual({ queue: 'default', paused: false });
  });

  it('may be paused before it has a job, twice, and resumed when it is not paused', async () => {
    await using one = await queue();
    await one.mulligan.queues.pause('later');
    await one.mulligan.queues.pause('later');
    expect(await one.mulligan.queues.list()).toEqual([{ queue: 'later', paused: true }]);
    await one.mulligan.queues.resume('later');
    await one.mulligan.queues.resume('never paused');
    expect((await one.mulligan.queues.list()).filter(({ paused }) => paused)).toEqual([]);
  });

  it('needs a name', async () => {
    await using one = await queue();
    expect(await complaint(one.mulligan.queues.pause(''))).toContain('queues.pause: expected a text');
    expect(await complaint(one.mulligan.queues.resume(5 as unknown as string))).toContain(
      'queues.resume: expected a text',
    );
  });
});
