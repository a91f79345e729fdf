import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import { expectSoundTables } from '../../../test/support/postgres-database.ts';
import { runSql } from '../../../test/support/postgres-schema.ts';
import { Two } from '../../../test/support/two-processes.ts';
import { type Clock, systemClock } from '../../clock.ts';
import {
  bury,
  claim,
  claimOne,
  complete,
  crash,
  die,
  discard,
  enqueueInLane,
  enqueueOne,
  idsOf,
  LEASE,
  MINUTE,
  newJob,
  newJobs,
  pruneWith,
  quota,
  redrive,
  retryIn,
  settlement,
  startOne,
} from '../conformance/builders.ts';
import type { ClaimedJob, NewJob, Store } from '../store.ts';

/*
 * Two transactions at once: the first has done its work and is not committed when the second comes. What the second does
 * then depends on locks, on looking again after a wait, and on finding what was committed late. No test of one call after
 * the other can notice when one of these is missing.
 */

const url = inject('postgresUrl');
/** Only to end a test that waits for what does not come: what is found is found within a second or two. */
const IN_TIME = { timeout: 10_000 };

/** Lets statements of a kind wait before or after their work: at a place inside a function where no lock would stop it. */
class Pause implements AsyncDisposable {
  readonly #holder: pg.Client = new pg.Client({ connectionString: url });
  readonly #key: number = Math.floor(Math.random() * 2 ** 31);

  /** `when`: as CREATE TRIGGER has it, such as AFTER INSERT. */
  static async at(when: string, schema: string, table: string): Promise<Pause> {
    const pause = new Pause();
    await pause.#holder.connect();
    await pause.#holder.query(`SELECT pg_advisory_lock(${pause.#key})`);
    await pause.#holder.query(
      `CREATE FUNCTION ${schema}.pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM pg_advisory_xact_lock_shared(${pause.#key}); RETURN NULL; END $$;
      CREATE TRIGGER pause ${when} ON ${schema}.${table} EXECUTE FUNCTION ${schema}.pause()`,
    );
    return pause;
  }

  async reached(): Promise<void> {
    const waits = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = ${this.#key} AND NOT granted`;
    await expect.poll(async () => (await this.#holder.query(waits)).rows.length, IN_TIME).toBeGreaterThan(0);
  }

  async end(): Promise<void> {
    await this.#holder.query(`SELECT pg_advisory_unlock(${this.#key})`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#holder.end();
  }
}

describe('a cancel', () => {
  it('of a job that a claim takes meanwhile asks the running job to stop', async () => {
    await using two = await Two.open(url);
    const id = await enqueueOne(two.other);
    const open = await two.begin(/claim/, (store) => claim(store));
    expect(await two.commitWhenBlocked(open, (store) => store.cancel([id]))).toEqual([{ id, result: 'cancelling' }]);
    expect(idsOf((await open.answer).jobs)).toEqual([id]);
  });

  it('of a job that ends meanwhile answers that it has ended', async () => {
    await using two = await Two.open(url);
    const job = await startOne(two.late);
    const open = await two.begin(/settle|complete/, (store) => store.settle([settlement(job, complete)]));
    const answer = await two.commitWhenBlocked(open, (store) => store.cancel([job.id]));
    expect(answer).toEqual([{ id: job.id, result: 'already-ended' }]);
  });

  it('of a job that is redriven between two looks finds it', async () => {
    await using two = await Two.open(url);
    const id = await bury(two.other);
    const again = (store: Store) => redrive(store, { ids: [id] });
    // The cancel has found no live job by then, and waits to see whether it has ended.
    const open = await two.lockFirst(/\.change/, 'finished', again);
    const answer = await two.commitWhenBlocked(open, (store) => store.cancel([id]));
    expect(answer).toEqual([{ id, result: 'cancelled' }]);
    expect((await open.answer).ids).toEqual([id]);
  });
});

describe('a key', () => {
  const keyed = (changes: Partial<NewJob> = {}): NewJob => newJob({ key: 'k', ...changes });

  it('that another enqueue takes meanwhile yields the job of that enqueue', async () => {
    await using two = await Two.open(url);
    const job = keyed();
    const open = await two.begin(/enqueue/, (store) => store.enqueue([job]));
    const answer = await two.commitWhenBlocked(open, (store) => store.enqueue([keyed()]));
    expect(answer).toEqual([{ id: job.id, existed: true }]);
  });

  it('whose holder ends between two looks goes to the new job', async () => {
    await using two = await Two.open(url);
    const job = await startOne(two.other, { key: 'k' });
    // The enqueue has found the key taken by then, and waits to see by which job.
    await using pause = await Pause.at('AFTER INSERT', two.schema, 'keys');
    const next = keyed();
    const answer = two.late.enqueue([next]);
    await pause.reached();
    await two.other.settle([settlement(job, complete)]);
    await pause.end();
    expect(await answer).toEqual([{ id: next.id, existed: false }]);
    expect(await two.other.enqueue([keyed()])).toEqual([{ id: next.id, existed: true }]);
  });

  it('of a started job that ends between two looks goes to the new job', async () => {
    await using two = await Two.open(url);
    const job = await startOne(two.other, { key: 'k', keyLife: 'started' });
    // The enqueue is about to take over the key by then.
    await using pause = await Pause.at('BEFORE UPDATE', two.schema, 'keys');
    const next = keyed();
    const answer = two.late.enqueue([next]);
    await pause.reached();
    await two.other.settle([settlement(job, complete)]);
    await pause.end();
    expect(await answer).toEqual([{ id: next.id, existed: false }]);
    expect(await two.other.enqueue([keyed()])).toEqual([{ id: next.id, existed: true }]);
  });

  it('of a job that has started goes to one of two that want it at once', async () => {
    await using two = await Two.open(url);
    await startOne(two.other, { key: 'k', keyLife: 'started' });
    const [first, second] = [keyed(), keyed()];
    const open = await two.begin(/enqueue/, (store) => store.enqueue([first]));
    const answer = await two.commitWhenBlocked(open, (store) => store.enqueue([second]));
    expect(answer).toEqual([{ id: first.id, existed: true }]);
  });

  it('that an enqueue takes meanwhile is not taken by a redrive', async () => {
    await using two = await Two.open(url);
    const dead = await bury(two.other, { key: 'k' });
    const job = keyed();
    const open = await two.begin(/enqueue/, (store) => store.enqueue([job]));
    const answer = await two.commitWhenBlocked(open, (store) => redrive(store, { ids: [dead] }));
    expect(answer.ids).toEqual([]);
    expect((await two.other.get([dead]))[0]?.state).toBe('dead');
  });

  it('that two redrives want at once goes to one of them', async () => {
    await using two = await Two.open(url);
    const first = await bury(two.other, { key: 'k' });
    const second = await bury(two.other, { key: 'k' });
    const again = (id: string) => (store: Store) => redrive(store, { ids: [id] });
    const open = await two.begin(/\.change/, again(first));
    expect((await two.commitWhenBlocked(open, again(second))).ids).toEqual([]);
    expect((await open.answer).ids).toEqual([first]);
  });
});

describe('a dead job', () => {
  it('that two redrives choose at once is redriven once', async () => {
    await using two = await Two.open(url);
    const id = await bury(two.other);
    const again = (store: Store) => redrive(store, { ids: [id] });
    const open = await two.begin(/\.change/, again);
    expect((await two.commitWhenBlocked(open, again)).ids).toEqual([]);
    expect((await open.answer).ids).toEqual([id]);
    expect(idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([id]);
  });

  it('that is redriven meanwhile is not discarded', async () => {
    await using two = await Two.open(url);
    const id = await bury(two.other);
    const open = await two.begin(/\.change/, (store) => redrive(store, { ids: [id] }));
    expect(await two.commitWhenBlocked(open, (store) => discard(store, { ids: [id] }))).toEqual([]);
    expect(idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([id]);
  });

  it('that is discarded meanwhile is not redriven', async () => {
    await using two = await Two.open(url);
    const id = await bury(two.other);
    const open = await two.begin(/\.change/, (store) => discard(store, { ids: [id] }));
    const answer = await two.commitWhenBlocked(open, (store) => redrive(store, { ids: [id] }));
    expect(answer.ids).toEqual([]);
    expect(await two.other.get([id])).toEqual([]);
  });
});

describe('a claim', () => {
  it('does not wait for jobs that another claim is taking', async () => {
    await using two = await Two.open(url);
    const ids = idsOf(await two.other.enqueue(newJobs(2)));
    const open = await two.begin(/claim/, (store) => claim(store, { limit: 1 }));
    const second = await claim(two.other, { limit: 2 });
    open.commit();
    const first = await open.answer;
    expect([...idsOf(first.jobs), ...idsOf(second.jobs)].sort()).toEqual(ids.sort());
  });

  it('counts the retries that another claim is starting against maxRetriesInFlight', async () => {
    await using two = await Two.open(url);
    await enqueueInLane(two.late, 'retry', 2);
    const capped = { limit: 1, queues: [quota({ maxRetriesInFlight: 1 })] };
    const open = await two.begin(/claim/, (store) => claim(store, capped));
    expect((await two.commitWhenBlocked(open, (store) => claim(store, capped))).jobs).toEqual([]);
    expect((await open.answer).jobs).toHaveLength(1);
  });

  it('finds a job that is committed after later jobs of its partition were claimed', async () => {
    await using two = await Two.open(url);
    const [early, later] = [newJob(), newJob()];
    const open = await two.begin(/enqueue/, (store) => store.enqueue([early]));
    await two.advance(1_000);
    await two.other.enqueue([later]);
    expect(idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([later.id]);
    for (let n = 0; n < 5; n++) {
      await two.advance(1_000);
      expect((await claim(two.other, { limit: 10 })).jobs).toEqual([]);
    }
    open.commit();
    await open.answer;
    await expect.poll(async () => idsOf((await claim(two.other, { limit: 10 })).jobs), IN_TIME).toEqual([early.id]);
  });

  it('finds the jobs of a new partition that is committed after a newer partition was read', async () => {
    await using two = await Two.open(url);
    const early = newJob({ resource: 'early' });
    const newer = newJob({ resource: 'newer' });
    const open = await two.begin(/partition/, (store) => store.enqueue([early]));
    await two.other.enqueue([newer]);
    expect(idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([newer.id]);
    open.commit();
    await open.answer;
    await expect.poll(async () => idsOf((await claim(two.other, { limit: 10 })).jobs), IN_TIME).toEqual([early.id]);
  });

  it('starts one suspect of a queue when two workers ask for one at once', async () => {
    await using two = await Two.open(url);
    await enqueueInLane(two.late, 'suspect', 2);
    // So that it knows the partition of the suspects, and its claim for one is a single statement.
    await claim(two.late);
    const asks = { limit: 1, queues: [quota({ suspect: 1 })] };
    const open = await two.begin(/claim/, (store) => claim(store, asks));
    expect((await two.commitWhenBlocked(open, (store) => claim(store, asks))).jobs).toEqual([]);
    expect((await open.answer).jobs).toHaveLength(1);
  });
});

describe('a settlement', () => {
  it('of a worker and of a rescuer at once is written once', async () => {
    await using two = await Two.open(url);
    const job = await startOne(two.late);
    await two.advance(LEASE + 1_000);
    const open = await two.begin(/settle|complete/, (store) => store.settle([settlement(job, complete)]));
    const answer = await two.commitWhenBlocked(open, (store) => store.settle([crash(job)]));
    expect(answer).toEqual(['stale']);
    expect(await two.other.runs(job.id)).toHaveLength(1);
  });

  it('as crashed is stale when a heartbeat that is being written keeps the lease', async () => {
    await using two = await Two.open(url);
    const { id, run, worker, ...rest } = await startOne(two.late);
    await two.advance(LEASE + 1_000);
    const beat = { id, run, worker, leaseMs: LEASE };
    const open = await two.begin(/heartbeat|renew/, (store) => store.heartbeat([beat]));
    const answer = await two.commitWhenBlocked(open, (store) => store.settle([crash({ id, run, worker, ...rest })]));
    expect(answer).toEqual(['stale']);
    expect((await two.other.get([id]))[0]?.state).toBe('running');
  });
});

describe('an expired lease', () => {
  it('is found when its claim was committed after others had looked', async () => {
    await using two = await Two.open(url);
    const id = await enqueueOne(two.other);
    const open = await two.begin(/claim/, (store) => claim(store));
    await two.advance(LEASE / 2);
    expect(await two.other.expired(10)).toEqual([]);
    open.commit();
    await open.answer;
    await two.advance(LEASE);
    expect(idsOf(await two.other.expired(10))).toEqual([id]);
  });

  it('is found for each of 160 jobs of many claims, however often others look meanwhile', async () => {
    await using two = await Two.open(url);
    const ids = idsOf(await two.other.enqueue(newJobs(160)));
    for (let n = 0; n < 16; n++) await claim(n % 2 === 0 ? two.late : two.other, { limit: 10 });
    for (let n = 0; n < 4; n++) {
      await two.advance(LEASE / 5);
      expect(await two.other.expired(10)).toEqual([]);
    }
    const [kept, ...others] = await two.other.list({ state: 'running', limit: 200 });
    expect([kept, ...others]).toHaveLength(160);
    await two.advance(LEASE / 2);
    expect(idsOf(await two.other.expired(200)).sort()).toEqual(ids.sort());
    expect(idsOf(await two.late.expired(200)).sort()).toEqual(ids.sort());
  });

  it('is found in time when a heartbeat has made the lease shorter', async () => {
    await using two = await Two.open(url);
    const { id, run, worker } = await startOne(two.other);
    await two.other.heartbeat([{ id, run, worker, leaseMs: MINUTE }]);
    await two.advance(MINUTE + 1_000);
    expect(idsOf(await two.late.expired(10))).toEqual([id]);
  });

  it('is found for a job whose neighbours of the same claim have ended', async () => {
    await using two = await Two.open(url);
    await two.other.enqueue(newJobs(4));
    const [first, second, third, last] = (await claim(two.other, { limit: 4 })).jobs as ClaimedJob[];
    for (const job of [first, second, third]) {
      await two.other.settle([settlement(job as ClaimedJob, complete)]);
    }
    await two.advance(LEASE + 1_000);
    expect(idsOf(await two.late.expired(10))).toEqual([last?.id]);
  });

  it('is found for jobs whose lease a look for others has passed over and a heartbeat has moved', async () => {
    await using two = await Two.open(url);
    const [first, second] = [await startOne(two.other), await startOne(two.other)];
    await two.advance(LEASE / 2);
    const { id, run, worker } = first;
    await two.other.heartbeat([{ id, run, worker, leaseMs: LEASE }]);
    await two.advance(LEASE / 2 + 1_000);
    expect(idsOf(await two.other.expired(10))).toEqual([second.id]);
    await two.other.settle([crash(second)]);
    await two.advance(LEASE);
    expect(idsOf(await two.other.expired(10))).toEqual([first.id]);
  });
});

describe('of more partitions than a claim is offered, one', () => {
  /** Their jobs have run, so no job waits in them; the first claims without a job park them. */
  const PARTITIONS = 100;
  const rest = async (store: Store): Promise<void> => {
    const jobs = Array.from({ length: PARTITIONS }, (_, n) => newJob({ resource: `r${n}` }));
    await store.enqueue(jobs);
    let left = PARTITIONS;
    while (left > 0) {
      const claimed = await claim(store, { limit: PARTITIONS });
      await store.settle(claimed.jobs.map((job) => settlement(job, complete)));
      left -= claimed.jobs.length;
    }
  };
  const claimNothing = async (store: Store): Promise<void> => {
    for (let n = 0; n < 10; n++) expect((await claim(store, { limit: 10 })).jobs).toEqual([]);
  };

  it('is not parked while a job that is put into it is being committed', async () => {
    await using two = await Two.open(url);
    await rest(two.other);
    // It is not parked at this moment, and has no job: the next claim would park it.
    await two.late.cancel([await enqueueOne(two.late, { resource: 'r5' })]);
    const job = newJob({ resource: 'r5' });
    const open = await two.begin(/enqueue/, (store) => store.enqueue([job]));
    await claimNothing(two.other);
    open.commit();
    await open.answer;
    await expect.poll(async () => idsOf((await claim(two.other, { limit: 10 })).jobs), IN_TIME).toEqual([job.id]);
  });

  it('that is parked gives a job that is put into it', async () => {
    await using two = await Two.open(url);
    await rest(two.other);
    await claimNothing(two.other);
    const job = newJob({ resource: 'r5' });
    await two.late.enqueue([job]);
    await expect.poll(async () => idsOf((await claim(two.other, { limit: 10 })).jobs), IN_TIME).toEqual([job.id]);
  });

  it.each([
    ['retried', retryIn(0)],
    ['redriven', die()],
  ])('that is parked gives a job that is %s', async (_, decision) => {
    await using two = await Two.open(url);
    await rest(two.other);
    // The first makes the partition that both wait in, and leaves it empty.
    for (let n = 0; n < 2; n++) {
      const job = await startOne(two.other, { resource: 'r5' });
      await two.other.settle([settlement(job, decision)]);
      if (decision.kind === 'dead') await redrive(two.late, { ids: [job.id] });
      await expect.poll(async () => idsOf((await claim(two.other, { limit: 10 })).jobs), IN_TIME).toEqual([job.id]);
      await claimNothing(two.other);
    }
  });
});

describe('a hold', () => {
  it('of a resource holds a partition that is created meanwhile', async () => {
    await using two = await Two.open(url);
    const open = await two.begin(/partition/, (store) => store.enqueue([newJob({ resource: 'r' })]));
    await two.commitWhenBlocked(open, (store) => store.hold({ resource: 'r' }, null));
    await open.answer;
    expect((await claim(two.other, { limit: 10 })).jobs).toEqual([]);
    await two.other.release({ resource: 'r' });
    expect((await claim(two.other, { limit: 10 })).jobs).toHaveLength(1);
  });

  it('that is being written holds a partition that is created after it', async () => {
    await using two = await Two.open(url);
    const open = await two.begin(/hold/, (store) => store.hold({ resource: 'r' }, null));
    await two.commitWhenBlocked(open, (store) => store.enqueue([newJob({ resource: 'r' })]));
    await open.answer;
    expect((await claim(two.other, { limit: 10 })).jobs).toEqual([]);
    await two.other.release({ resource: 'r' });
    expect((await claim(two.other, { limit: 10 })).jobs).toHaveLength(1);
  });
});

describe('two holds at once', () => {
  it('of the same target: the later one counts', async () => {
    await using two = await Two.open(url);
    await enqueueOne(two.other, { resource: 'r' });
    const open = await two.begin(/hold/, (store) => store.hold({ resource: 'r' }, null));
    await two.commitWhenBlocked(open, (store) => store.hold({ resource: 'r' }, 1));
    expect((await claim(two.other, { limit: 10 })).jobs).toHaveLength(1);
  });

  it('of a queue and of a resource: a job of both waits for both', async () => {
    await using two = await Two.open(url);
    await enqueueOne(two.other, { resource: 'r' });
    const open = await two.begin(/hold/, (store) => store.hold({ queue: 'default' }, null));
    await two.commitWhenBlocked(open, (store) => store.hold({ resource: 'r' }, 1));
    expect((await claim(two.other, { limit: 10 })).jobs).toEqual([]);
    await two.other.release({ queue: 'default' });
    expect((await claim(two.other, { limit: 10 })).jobs).toHaveLength(1);
  });
});

describe('a partition', () => {
  it('that two processes create at once holds the jobs of both', async () => {
    await using two = await Two.open(url);
    const [first, second] = [newJob({ resource: 'new' }), newJob({ resource: 'new' })];
    const open = await two.begin(/partition/, (store) => store.enqueue([first]));
    await two.commitWhenBlocked(open, (store) => store.enqueue([second]));
    await open.answer;
    expect(idsOf((await claim(two.other, { limit: 10 })).jobs).sort()).toEqual([first.id, second.id].sort());
  });
});

describe('an empty partition that pruning deletes', () => {
  const KEEP_ALL = { completedMs: null, deadMs: null, cancelledMs: null };
  const prune = (store: Store) => pruneWith(store, KEEP_ALL, 10);
  const resource = 'r';
  /** In this clock nothing takes time, so that each call of prune looks at the partitions. */
  const still: Clock = { ...systemClock, monotonic: () => 0 };

  /** Both processes know the numbers of the resource's partitions, of which none has a job. */
  async function emptied(two: Two): Promise<void> {
    for (const store of [two.late, two.other]) {
      const job = await startOne(store, { resource });
      await store.settle([settlement(job, retryIn(0))]);
      await store.settle([settlement(await claimOne(store), die())]);
      await redrive(store, { ids: [job.id] });
      await store.settle([settlement(await claimOne(store), complete)]);
    }
  }

  it('stays while a job that is put into it is being committed', async () => {
    await using two = await Two.open(url, still);
    await emptied(two);
    const job = newJob({ resource });
    const open = await two.begin(/enqueue/, (store) => store.enqueue([job]));
    await prune(two.other);
    open.commit();
    await open.answer;
    await expectSoundTables(url, two.schema);
    expect(idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([job.id]);
  });

  it('is made again by an enqueue meanwhile', async () => {
    await using two = await Two.open(url, still);
    await emptied(two);
    const job = newJob({ resource });
    const open = await two.begin(/prune_partitions/, prune);
    await two.commitWhenBlocked(open, (store) => store.enqueue([job]));
    await expectSoundTables(url, two.schema);
    expect(idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([job.id]);
  });

  it('is made again by a retry meanwhile', async () => {
    await using two = await Two.open(url, still);
    await emptied(two);
    const job = await startOne(two.other, { resource });
    const open = await two.begin(/prune_partitions/, prune);
    const answer = await two.commitWhenBlocked(open, (store) => store.settle([settlement(job, retryIn(0))]));
    expect(answer).toEqual(['settled']);
    await expectSoundTables(url, two.schema);
    expect(idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([job.id]);
  });

  it('is made again by a redrive meanwhile', async () => {
    await using two = await Two.open(url, still);
    await emptied(two);
    const id = await bury(two.other, { resource });
    const open = await two.begin(/prune_partitions/, prune);
    const { ids } = await two.commitWhenBlocked(open, (store) => redrive(store, { ids: [id] }));
    expect(ids).toEqual([id]);
    await expectSoundTables(url, two.schema);
    expect(idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([id]);
  });

  it.each(['READ COMMITTED', 'REPEATABLE READ'])(
    'is made again by a %s transaction of the caller',
    async (isolation) => {
      await using two = await Two.open(url, still);
      await emptied(two);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
      await client.query(`SELECT count(*) FROM ${two.schema}.partitions`);
      const job = newJob({ resource });
      const open = await two.begin(/prune_partitions/, prune);
      const added = two.other.transactions?.enqueue(client, [job]);
      const waits = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${two.schema}%'`;
      await expect.poll(async () => (await runSql(url, waits)).length, IN_TIME).toBe(1);
      open.commit();
      expect(await added).toEqual([{ id: job.id, existed: false }]);
      await prune(two.late);
      await client.query('COMMIT');
      await client.end();
      await expectSoundTables(url, two.schema);
      expect(idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([job.id]);
    },
  );

  it('never has a job, however pruning and enqueues of many resources overlap', async () => {
    await using two = await Two.open(url, still);
    const jobs = (): NewJob[] => Array.from({ length: 20 }, (_, n) => newJob({ resource: `r${n}` }));
    for (let round = 0; round < 20; round++) {
      const [first, second] = [jobs(), jobs()];
      const calls = [two.late.enqueue(first), prune(two.other), two.other.enqueue(second), prune(two.late)];
      await Promise.all([...calls, two.other.cancel(idsOf(first)), prune(two.other)]);
      await Promise.all([two.other.cancel(idsOf([...first, ...second])), prune(two.late), prune(two.other)]);
    }
    await two.late.enqueue(jobs());
    await expectSoundTables(url, two.schema);
  });

  it('stays when a job comes in after pruning has found it empty, and before it is locked', async () => {
    await using two = await Two.open(url, still);
    const empty = Array.from({ length: 400 }, (_, n) => newJob({ resource: `r${n}` }));
    for (let round = 0; round < 20; round++) {
      await two.other.enqueue(empty.map((job) => ({ ...job, id: newJob().id })));
      await two.other.cancel(idsOf(await two.other.list({ limit: 1_000, state: 'ready' })));
      const pruning = prune(two.other);
      await two.late.enqueue([newJob({ resource: 'r0' })]);
      await pruning;
      await expectSoundTables(url, two.schema);
      await two.other.cancel(idsOf(await two.other.list({ limit: 1_000, state: 'ready' })));
    }
  });
});

describe('an interned string', () => {
  it('that two processes store at once is stored once', async () => {
    await using two = await Two.open(url);
    const job = (): NewJob => newJob({ name: 'new-name', queue: 'new-queue' });
    await Promise.all([two.late.enqueue([job()]), two.other.enqueue([job()])]);
    const claimed = await claimOne(two.other, { queues: [quota({ queue: 'new-queue' })] });
    expect(claimed.name).toBe('new-name');
    const { rows } = await two.other.stats();
    expect(rows.filter(({ name }) => name === 'new-name')).toHaveLength(1);
  });
});
