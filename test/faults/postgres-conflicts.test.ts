import { describe, expect, inject, it } from 'vitest';
import { Mulligan } from '../../src/index.ts';
import { decide } from '../../src/retry/decide.ts';
import type { Outcome, OutcomeKind } from '../../src/retry/outcome.ts';
import { resolvePolicy } from '../../src/retry/resolve.ts';
import { PostgresStore } from '../../src/store/postgres/index.ts';
import type { ClaimedJob, NewJob, QueueQuota, Settlement } from '../../src/store/store.ts';
import { expectSoundTables, TestDatabase } from '../support/postgres-database.ts';
import { type Chance, chance } from './chance.ts';
import { tell } from './figures.ts';
import { checkLedgers } from './ledger-check.ts';

const server = inject('postgresUrl');
const JOBS = 60;
const ROUNDS = Number(process.env.MULLIGAN_SOAK_SECONDS ?? 4) * 2;
const STORES = 4;
const { policy } = resolvePolicy({
  job: { maxAttempts: 1_000, maxCrashes: 1_000, backoff: { kind: 'fixed', base: 1 }, jitter: 'none' },
});
const quota: QueueQuota = {
  queue: 'default',
  share: JOBS,
  retry: JOBS,
  redrive: JOBS,
  suspect: 0,
  maxRetriesInFlight: null,
};

describe.each(['read committed', 'repeatable read', 'serializable'])(
  'many connections at the same jobs, on a server whose transactions are %s',
  (isolation) => {
    it("stand in each other's way, and no caller hears of it", async () => {
      const luck = chance();
      await using database = await TestDatabase.create(server);
      await database.sql(`ALTER DATABASE ${database.name} SET default_transaction_isolation = '${isolation}'`);
      // Deadlocks are made on purpose; a second for each would be long.
      await database.sql(`ALTER DATABASE ${database.name} SET deadlock_timeout = '50ms'`);
      const stores = await Promise.all(Array.from({ length: STORES }, () => PostgresStore.open({ url: database.url })));
      const [first] = stores as [PostgresStore];
      const acknowledged: string[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const ids = await enqueueAtOnce(stores, round);
        acknowledged.push(...ids);
        await collide(stores, luck, ids);
      }
      await finish(first);
      const deadlocks = await database.sql(
        'SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()',
      );
      for (const store of stores) await store.close();
      await using mulligan = await Mulligan.open(database.url);
      const { stats } = await checkLedgers(mulligan, { acknowledged });
      expect(stats.totals.enqueued).toBe(acknowledged.length);
      await expectSoundTables(database.url);
      tell(isolation, { jobs: acknowledged.length, deadlocks: (deadlocks[0] as { n: number }).n });
    });
  },
);

/** The same jobs from everybody, in different orders and under the same keys. */
async function enqueueAtOnce(stores: readonly PostgresStore[], round: number): Promise<string[]> {
  const jobs = Array.from({ length: JOBS }, (_, n) => newJob(round, n));
  await Promise.all(stores.map((store, index) => store.enqueue(index % 2 === 0 ? jobs : jobs.toReversed())));
  return jobs.map(({ id }) => id);
}

function newJob(round: number, n: number): NewJob {
  const digits = (value: number, length: number): string => value.toString(16).padStart(length, '0');
  return {
    id: `${digits(round, 8)}-0000-7000-8000-${digits(n, 12)}`,
    name: `job ${n % 3}`,
    queue: 'default',
    retryQueue: null,
    resource: null,
    priority: 5,
    payload: '{}',
    policy,
    delayMs: 0,
    dueAt: null,
    key: `${round} ${n}`,
    keyLife: 'finished',
  };
}

/** Claims, heartbeats, settlements, rescues and cancels of overlapping batches, all at once. */
async function collide(stores: readonly PostgresStore[], luck: Chance, ids: readonly string[]): Promise<void> {
  const claims = await Promise.all(
    stores.map((store, index) =>
      store.claim({ worker: `w${index}`, leaseMs: 5, limit: JOBS / STORES, queues: [quota] }),
    ),
  );
  const claimed = claims.flatMap(({ jobs }) => jobs);
  const some = <T>(things: readonly T[]): T[] =>
    shuffled(
      things.filter(() => luck.index(2) === 0),
      luck,
    );
  await Promise.all(
    stores.flatMap((store) => [
      store.heartbeat(some(claimed).map(({ id, run, worker }) => ({ id, run, worker, leaseMs: 5 }))),
      store.settle(some(claimed).map((job) => ending(job, luck))),
      store.expired(JOBS).then((expired) => store.settle(shuffled(expired, luck).map(crashed))),
      store.cancel(some(ids)),
    ]),
  );
}

/** Whatever is left. */
async function finish(store: PostgresStore): Promise<void> {
  for (;;) {
    const crashes = (await store.expired(1_000)).map(crashed);
    if (crashes.length > 0) await store.settle(crashes);
    const { jobs } = await store.claim({
      worker: 'last',
      leaseMs: 60_000,
      limit: 1_000,
      queues: [{ ...quota, share: 1_000 }],
    });
    if (jobs.length > 0) await store.settle(jobs.map(completed));
    const { rows } = await store.stats();
    if (rows.every(({ states }) => states.ready + states.running + states.scheduled + states.retrying === 0)) return;
  }
}

function ending(job: ClaimedJob, luck: Chance): Settlement {
  return settlement(
    job,
    luck.index(2) === 0 ? { kind: 'completed' } : { kind: 'released', because: { kind: 'shutdown' } },
  );
}

function completed(job: ClaimedJob): Settlement {
  return settlement(job, { kind: 'completed' });
}

function crashed(job: ClaimedJob): Settlement {
  return settlement(job, { kind: 'crashed' }, job.leaseEndsAt);
}

function settlement(job: ClaimedJob, outcome: Outcome, endedAt = job.claimedAt): Settlement {
  const { id, run, worker, claimedAt } = job;
  const decision = decide(job, outcome, endedAt, () => 0);
  const word = outcome.kind as OutcomeKind;
  return { id, run, worker, outcome: word, decision, error: null, startedAt: claimedAt, endedAt };
}

function shuffled<T>(things: readonly T[], luck: Chance): T[] {
  return things
    .map((thing) => ({ thing, place: luck.between(0, 1) }))
    .sort((a, b) => a.place - b.place)
    .map(({ thing }) => thing);
}
