import { DatabaseSync, StatementSync } from 'node:sqlite';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { withStore } from '../../../test/support/sqlite-file.ts';
import { type LimitKey, type LimitSettings, settingsFor, unlimited } from '../../limit/limit.ts';
import { roomOf } from '../../limit/room.ts';
import type { Decision } from '../../retry/decision.ts';
import type { VirtualClock } from '../../testing/virtual-clock.ts';
import {
  changeAll,
  claim,
  claimRequest,
  complete,
  crash,
  die,
  giveBack,
  HOUR,
  idsOf,
  LEASE,
  MINUTE,
  newJob,
  newJobs,
  only,
  pruneWith,
  quota,
  redrive,
  retryIn,
  settlement,
  settleOne,
} from '../conformance/builders.ts';
import { MemoryStore } from '../memory/store.ts';
import type { ClaimedJob, ClaimRequest, LimitedClaim, NewJob, Store } from '../store.ts';
import { SLOT } from './limit-slots.ts';

const SHOP = 'shop';

function allow(store: Store, settings: Partial<LimitSettings>, limit = SHOP): Promise<void> {
  return store.writeLimits([{ limit, key: null, source: 'code', settings: { ...unlimited, ...settings } }]);
}

function behind(...keys: string[]): LimitKey[] {
  return keys.map((key, index) => ({ limit: index === 0 ? SHOP : `${SHOP} ${index}`, key }));
}

function claimLimited(store: Store, changes: Partial<ClaimRequest> = {}): Promise<LimitedClaim> {
  return store.claimLimited(claimRequest(changes));
}

/** Claims until nothing is left that may start now. */
async function drain(store: Store): Promise<{ jobs: ClaimedJob[]; nextAt: number | null }> {
  const jobs: ClaimedJob[] = [];
  for (;;) {
    const answer = await claimLimited(store, { limit: 1_000, queues: [quota({ share: 1_000 })] });
    jobs.push(...answer.jobs);
    if (answer.jobs.length === 0 && answer.nextAt !== answer.now) return { jobs, nextAt: answer.nextAt };
  }
}

function count(path: string, table: string): number {
  using db = new DatabaseSync(path, { readOnly: true });
  return (db.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n;
}

const keys = ['a', 'b', 'c'] as const;
const key = fc.constantFrom(...keys);
const concurrency = fc.constantFrom(null, 1, 2, 3);
const rates = fc.constantFrom(null, { limit: 3, perMs: HOUR, burst: 2 }, { limit: 60, perMs: HOUR, burst: 1 });

/** What can happen to both stores alike. */
const steps = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('enqueue'),
      key,
      count: fc.integer({ min: 1, max: 4 }),
      priority: fc.constantFrom(5, 7),
      delayMs: fc.constantFrom(0, 0, HOUR),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('settle'),
      at: fc.nat(),
      decision: fc.constantFrom<Decision>(
        complete,
        complete,
        retryIn(0),
        retryIn(HOUR),
        die(),
        giveBack('release'),
        giveBack('snooze', MINUTE),
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('limit'), concurrency, rate: rates, key: fc.option(key) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('advance'), ms: fc.constantFrom(1_000, 20 * MINUTE, HOUR) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel'), at: fc.nat() }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('crash', 'trial', 'redrive', 'runNow', 'hold', 'release', 'prune') }),
  },
);
type Step = typeof steps extends fc.Arbitrary<infer One> ? One : never;

describe('jobs behind limits, whatever happens to them,', () => {
  it('start when and as often as in the memory store', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 40, size: 'max' }), async (happened) => {
        await withStore(async ({ store, clock }) => {
          const memory = new MemoryStore({ clock });
          const both = [store, memory];
          const known: string[] = [];
          const running = new Map<string, [ClaimedJob, ClaimedJob]>();
          /** Answers when SQLite says that the next may start. */
          const claimBoth = async (): Promise<number | null> => {
            const [own, model] = [await drain(store), await drain(memory)];
            expect(idsOf(own.jobs).toSorted()).toEqual(idsOf(model.jobs).toSorted());
            for (const job of own.jobs) running.set(job.id, [job, only(model.jobs.filter(({ id }) => id === job.id))]);
            return own.nextAt;
          };
          for (const step of happened) {
            await happen(step, { both, clock, known, running });
            await claimBoth();
          }
          // None may start sooner than was said.
          for (let times = 0; times < 4; times++) {
            const nextAt = (await claimBoth()) ?? clock.now() + 3 * HOUR;
            await clock.advance(nextAt - 1 - clock.now());
            expect((await drain(memory)).jobs).toEqual([]);
            await clock.advance(1);
          }
          await memory.close();
        });
      }),
      { numRuns: 60 },
    );
  }, 240_000);

  it('keep all of several limits, and none waits while all have room', async () => {
    const tuples = fc.tuple(key, fc.constantFrom('x', 'y'));
    const events = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({ kind: fc.constant('enqueue'), keys: tuples, count: fc.integer({ min: 1, max: 30 }) }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constant('settle'),
          at: fc.nat(),
          decision: fc.constantFrom<Decision>(complete, retryIn(0), giveBack('release'), die()),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant('limit'),
          first: fc.boolean(),
          key: fc.option(key),
          concurrency,
          total: fc.constantFrom(null, 2, 5),
        }),
      },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(events, { maxLength: 30, size: 'max' }), async (happened) => {
        await withStore(async ({ store, path }) => {
          const running: ClaimedJob[] = [];
          for (const event of happened) {
            if (event.kind === 'enqueue') {
              // Partitions of their own, so that many of them wait for one key.
              const jobs = Array.from({ length: event.count }, (_, n) =>
                newJob({ limits: behind(...event.keys), resource: `hook/${n}` }),
              );
              await store.enqueue(jobs);
            } else if (event.kind === 'settle') {
              const job = running.splice(event.at % Math.max(1, running.length), 1)[0];
              if (job !== undefined) await settleOne(store, job, event.decision);
            } else {
              const { key, concurrency: most, total } = event;
              const rule = { limit: event.first ? SHOP : `${SHOP} 1`, source: 'code' } as const;
              const settings = { concurrency: most, rate: null };
              await store.writeLimits([
                key === null ? { ...rule, key, settings: { ...settings, total } } : { ...rule, key, settings },
              ]);
            }
            const { jobs } = await drain(store);
            running.push(...jobs);
            await expectKept(store, path, jobs);
          }
        });
      }),
      { numRuns: 40 },
    );
  }, 240_000);
});

interface Happening {
  readonly both: readonly Store[];
  readonly clock: VirtualClock;
  /** All jobs. */
  readonly known: string[];
  /** As each store has given them. */
  readonly running: Map<string, readonly ClaimedJob[]>;
}

async function happen(step: Step, { both, clock, known, running }: Happening): Promise<void> {
  const each = async (act: (store: Store, index: number) => Promise<unknown>): Promise<void> => {
    for (const [index, store] of both.entries()) await act(store, index);
  };
  switch (step.kind) {
    case 'enqueue': {
      const {
        count: jobs,
        priority,
        delayMs,
      } = step as { count: number; priority: number; delayMs: number; key: string };
      const made = newJobs(jobs, { limits: behind((step as { key: string }).key), priority, delayMs });
      known.push(...idsOf(made));
      return each((store) => store.enqueue(made));
    }
    case 'settle': {
      const { at, decision } = step as { at: number; decision: Decision };
      const id = [...running.keys()][at % Math.max(1, running.size)];
      if (id === undefined) return;
      const jobs = running.get(id) as readonly ClaimedJob[];
      running.delete(id);
      return each((store, index) => store.settle([settlement(jobs[index] as ClaimedJob, decision)]));
    }
    case 'limit': {
      const { key: one, ...changed } = step as unknown as { key: string | null } & Partial<LimitSettings>;
      const settings = { concurrency: changed.concurrency ?? null, rate: changed.rate ?? null };
      return each((store) => store.writeLimits([{ limit: SHOP, key: one, source: 'set', settings }]));
    }
    case 'advance':
      return clock.advance((step as { ms: number }).ms);
    case 'cancel': {
      const id = known[(step as { at: number }).at % Math.max(1, known.length)];
      if (id !== undefined) await each((store) => store.cancel([id]));
      return;
    }
    case 'crash':
      await clock.advance(LEASE + MINUTE);
      running.clear();
      return each(async (store) => {
        const expired = (await store.expired(1_000)).sort((a, b) => (a.id < b.id ? -1 : 1));
        await store.settle(expired.map((job, index) => crash(job, retryIn(0, index % 2 === 0 ? 'suspect' : 'retry'))));
      });
    case 'trial': {
      const taken: ClaimedJob[] = [];
      await each(async (store) => {
        taken.push(...(await claim(store, { limit: 1, queues: [quota({ suspect: 1 })] })).jobs);
      });
      if (taken.length === 2) running.set((taken[0] as ClaimedJob).id, taken);
      return;
    }
    case 'redrive':
      return each((store) => redrive(store, {}));
    case 'runNow':
      return each((store) => changeAll(store, 'runNow', {}));
    case 'hold':
      return each((store) => store.hold({ queue: 'default' }, null));
    case 'release':
      return each((store) => store.release({ queue: 'default' }));
    case 'prune':
      return each((store) => pruneWith(store, { completedMs: 0, deadMs: null, cancelledMs: 0 }, 1_000));
  }
}

/** By the rows themselves: no key of a job that has just started has more than it may, and each other job waits for a full one. */
async function expectKept(store: Store, path: string, started: readonly ClaimedJob[]): Promise<void> {
  using db = new DatabaseSync(path, { readOnly: true });
  const slots = db.prepare('SELECT name, key, state FROM limit_slots').all() as {
    name: string;
    key: string;
    state: number;
  }[];
  const rules = new Map((await store.limits({ limit: 100 })).map((info) => [info.name, info]));
  const keyRules = new Map<string, NonNullable<Parameters<typeof settingsFor>[1]>>();
  for (const name of rules.keys()) {
    for (const info of await store.limitKeys(name, { limit: 1_000 })) keyRules.set(`${name} ${info.key}`, info);
  }
  const use = ({ limit, key: text }: LimitKey): Parameters<typeof roomOf>[1] => {
    const own = slots.filter((slot) => slot.name === limit && slot.key === text);
    return {
      running: own.filter(({ state }) => state === SLOT.running).length,
      waiting: own.filter(({ state }) => state !== SLOT.running).length,
      suspects: own.filter(({ state }) => state === SLOT.suspect).length,
      total: slots.filter((slot) => slot.name === limit && slot.state > 0).length,
      nextStartAt: 0,
    };
  };
  const settingsOf = (one: LimitKey): LimitSettings =>
    settingsFor(rules.get(one.limit), keyRules.get(`${one.limit} ${one.key}`));
  const exceeded = started
    .flatMap(({ limits }) => limits)
    .filter((one) => {
      const { concurrency: most, total } = settingsOf(one);
      return use(one).running > (most ?? 1_000) || use(one).total > (total ?? 1_000);
    });
  expect(exceeded).toEqual([]);
  const waiting = await store.list({ state: ['ready', 'retrying'], limit: 10_000 });
  const startable = waiting.filter(({ limits, lane }) =>
    limits.every((one) => roomOf(settingsOf(one), use(one), lane, 0) > 0),
  );
  expect(startable.map(({ id, limits, lane }) => ({ id, limits, lane }))).toEqual([]);
}

/** The statements that something executes, with how many rows each gave. */
async function statementsOf(act: () => Promise<unknown>): Promise<{ sql: string; rows: number }[]> {
  const spies = (['get', 'all', 'run'] as const).map((method) => vi.spyOn(StatementSync.prototype, method));
  try {
    await act();
    return spies.flatMap(({ mock }) =>
      mock.results.map(({ value }, index) => ({
        sql: (mock.contexts[index] as StatementSync).sourceSQL,
        rows: Array.isArray(value) ? value.length : 1,
      })),
    );
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** Each key has a job that runs and two that wait. */
async function fillKeys(store: Store, many: number): Promise<ClaimedJob[]> {
  const jobs = Array.from({ length: many }, (_, index) => newJobs(3, { limits: behind(`key ${index}`) }));
  await store.enqueue(jobs.flat());
  return (await drain(store)).jobs;
}

describe('the cost of a limited claim', () => {
  const costsOf = async (
    many: number,
  ): Promise<{ idle: number; served: number; unlimited: number; scans: string[] }> => {
    let costs = { idle: 0, served: 0, unlimited: 0, scans: [] as string[] };
    await withStore(async ({ store, path }) => {
      await allow(store, { concurrency: 1, total: 5_000, rate: { limit: 1_000, perMs: 1_000, burst: 100 } });
      const running = await fillKeys(store, many);
      expect(running).toHaveLength(many);
      const idle = await statementsOf(() => claimLimited(store));
      const served = await statementsOf(async () => {
        await settleOne(store, running[many - 1] as ClaimedJob, complete);
        expect((await claimLimited(store)).jobs).toHaveLength(1);
      });
      const ordinary = await statementsOf(async () => {
        await store.enqueue([newJob()]);
        await settleOne(store, only((await claim(store)).jobs), complete);
      });
      const rowsOf = (statements: typeof idle): number => statements.reduce((sum, { rows }) => sum + rows, 0);
      using db = new DatabaseSync(path, { readOnly: true });
      const plans = [...idle, ...served, ...ordinary]
        .filter(({ sql }) => !/^\s*(PRAGMA|BEGIN|COMMIT)/.test(sql))
        .flatMap(({ sql }) => db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]);
      const scans = plans
        .map(({ detail }) => detail)
        .filter((detail) => /^SCAN (jobs|partitions|limit_(?!freed))/.test(detail));
      costs = { idle: rowsOf(idle), served: rowsOf(served), unlimited: rowsOf(ordinary), scans };
    });
    return costs;
  };

  it('is the same with ten full keys as with a thousand, and so is that of an ordinary one', async () => {
    const few = await costsOf(10);
    expect(few.scans).toEqual([]);
    expect(await costsOf(1_000)).toEqual(few);
  });

  it('is bounded when a change of the limit brings thousands of full keys back', () =>
    withStore(async ({ store }) => {
      await allow(store, { concurrency: 1 });
      const running = await fillKeys(store, 3_000);
      await allow(store, { concurrency: 1, rate: null });
      const executed = await statementsOf(() => claimLimited(store));
      expect(executed.length).toBeLessThan(3_000);
      await settleOne(store, running[2_999] as ClaimedJob, complete);
      expect(only((await drain(store)).jobs).limits).toEqual(behind('key 2999'));
    }));

  it('does not grow with the partitions that wait for one key', () =>
    withStore(async ({ store, path }) => {
      await allow(store, { concurrency: 1 }, `${SHOP} 1`);
      const jobs = Array.from({ length: 300 }, (_, index) => newJob({ limits: behind(`key ${index}`, 'tenant') }));
      await store.enqueue(jobs);
      const first = only((await drain(store)).jobs);
      const executed = await statementsOf(async () => {
        await settleOne(store, first, complete);
        expect((await claimLimited(store)).jobs).toHaveLength(1);
      });
      expect(executed.length).toBeLessThan(300);
      expect(count(path, 'partitions WHERE waits_for IS NOT NULL')).toBeGreaterThan(280);
    }));
});

describe('while another process holds the write lock', () => {
  it('a claim is answered when all keys or the total are full, and a permit when it is refused', () =>
    withStore(async ({ store, path }) => {
      await allow(store, { concurrency: 1, rate: { limit: 1, perMs: HOUR, burst: 1 } });
      await allow(store, { total: 1 }, 'other');
      await store.enqueue(newJobs(2, { limits: behind('a') }));
      await store.enqueue(newJobs(2, { limits: [{ limit: 'other', key: 'b' }] }));
      expect((await drain(store)).jobs).toHaveLength(2);
      using db = new DatabaseSync(path);
      db.exec('BEGIN IMMEDIATE');
      expect((await claimLimited(store)).jobs).toEqual([]);
      expect((await store.permit({ limit: SHOP, key: 'a', cost: 1 })).startsAt).not.toBeNull();
      expect((await store.permit({ limit: 'other', key: 'b', cost: 1 })).startsAt).toBeNull();
      db.exec('ROLLBACK');
    }));
});

describe('a flood of keys', () => {
  const tables = ['partitions', 'limited_queues', 'limit_slots', 'limit_rates', 'limit_freed'];

  it('leaves no rows behind when its jobs are gone', () =>
    withStore(async ({ store, path, clock }) => {
      await allow(store, { concurrency: 1, rate: { limit: 10, perMs: 1_000, burst: 1 } });
      const jobs = Array.from({ length: 2_500 }, (_, index) => newJobs(2, { limits: behind(`key ${index}`) })).flat();
      await store.enqueue(jobs);
      const { jobs: running } = await drain(store);
      await store.settle(running.map((job) => settlement(job, complete)));
      await store.cancel(idsOf(jobs));
      await clock.advance(MINUTE);
      for (let isDone = false; !isDone; ) {
        ({ isDone } = await pruneWith(store, { completedMs: 0, deadMs: 0, cancelledMs: 0 }, 500));
      }
      expect(tables.map((table) => [table, count(path, table)])).toEqual(tables.map((table) => [table, 0]));
      expect(await store.limitKeys(SHOP, { limit: 10 })).toEqual([]);
    }));
});

describe('jobs aside behind limits', () => {
  it('wait among all others behind their limits again when they have waited aside for too long', () =>
    withStore(async ({ store, clock }) => {
      await allow(store, { concurrency: 1 });
      await store.enqueue([newJob({ limits: behind('a') })]);
      const job = only((await claimLimited(store)).jobs);
      const aside = { version: 1, isRejected: false };
      await settleOne(store, job, { kind: 'release', delayMs: 0, rule: 'no-handler', aside });
      expect((await claimLimited(store)).jobs).toEqual([]);
      await clock.advance(HOUR);
      await pruneWith(store, { completedMs: null, deadMs: null, cancelledMs: null, asideMs: MINUTE }, 10);
      expect((await claim(store)).jobs).toEqual([]);
      expect(idsOf((await claimLimited(store)).jobs)).toEqual([job.id]);
    }));

  it('are listed under no queue of their own', () =>
    withStore(async ({ store }) => {
      await store.enqueue([newJob({ limits: behind('a') })]);
      expect((await store.queues()).map(({ queue }) => queue)).toEqual(['default']);
    }));
});

describe('a debounced job', () => {
  it('that is replaced stands behind the limits of the new one', () =>
    withStore(async ({ store }) => {
      await allow(store, { concurrency: 1 });
      const debounced = (changes: Partial<NewJob>): NewJob =>
        newJob({ key: 'k', keyLife: 'started', debounce: { maxWaitMs: null }, ...changes });
      await store.enqueue([debounced({ limits: behind('a') })]);
      await store.enqueue([debounced({ limits: behind('b') })]);
      const { limits } = only((await claimLimited(store)).jobs);
      expect(limits).toEqual(behind('b'));
    }));
});
