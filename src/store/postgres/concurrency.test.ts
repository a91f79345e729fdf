import { describe, expect, inject, it } from 'vitest';
import { LatePool, type OpenTransaction } from '../../../test/support/late-pool.ts';
import { movableTime, newSchema, runSql } from '../../../test/support/postgres-schema.ts';
import {
  bury,
  claim,
  claimOne,
  complete,
  crash,
  enqueueInLane,
  enqueueOne,
  idsOf,
  LEASE,
  newJob,
  newJobs,
  only,
  quota,
  settlement,
  startOne,
} from '../conformance/builders.ts';
import type { NewJob, Store } from '../store.ts';
import { PostgresStore } from './store.ts';

/*
 * Two transactions at once: the first has done its work and is not committed when the second comes. What the second does
 * then depends on locks, on looking again after a wait, and on finding what was committed late. No test of one call after
 * the other can notice when one of these is missing.
 */

const url = inject('postgresUrl');

/** Two processes on one schema: one commits when the test says so, the other at once. */
class Two implements AsyncDisposable {
  readonly schema: string = newSchema();
  readonly #latePool: LatePool = new LatePool(url);
  readonly #otherPool: LatePool = new LatePool(url);
  late!: Store;
  other!: Store;

  static async open(): Promise<Two> {
    const two = new Two();
    const { schema } = two;
    two.late = await PostgresStore.open({ pool: two.#latePool, schema, wakeUps: false });
    two.other = await PostgresStore.open({ pool: two.#otherPool, schema, wakeUps: false });
    await movableTime(url, schema);
    // Both know the strings and partitions that most tests use, so that a verb is one statement.
    for (const store of [two.late, two.other]) {
      for (const key of [null, 'known']) await store.settle([settlement(await startOne(store, { key }), complete)]);
    }
    return two;
  }

  /** Carries out a call of the late process up to its COMMIT. `text` is a part of the statement to stop after. */
  async begin<Answer>(
    text: RegExp,
    call: (store: Store) => Promise<Answer>,
  ): Promise<OpenTransaction & { readonly answer: Promise<Answer> }> {
    const reached = this.#latePool.keepOpen(text);
    const answer = call(this.late);
    answer.catch(() => {});
    const open = await Promise.race([reached, answer.then(() => null)]);
    if (open === null) throw new Error(`expected a statement like ${text}, got none.`);
    return { commit: open.commit, answer };
  }

  /** Commits as soon as the other process waits for a lock, and answers what its call then says. */
  async commitWhenBlocked<Answer>(open: OpenTransaction, call: (store: Store) => Promise<Answer>): Promise<Answer> {
    const answer = call(this.other);
    answer.catch(() => {});
    const early = await Promise.race([this.#otherPool.waitsForLock(), answer.then(() => true)]);
    if (early === true) throw new Error('expected the call to wait for a lock, got an answer at once.');
    open.commit();
    return answer;
  }

  async advance(ms: number): Promise<void> {
    await runSql(url, `UPDATE ${this.schema}.test_time SET shift = shift + $1`, [ms]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.late.close(), this.other.close()]);
    await this.#latePool[Symbol.asyncDispose]();
    await this.#otherPool[Symbol.asyncDispose]();
    await runSql(url, `DROP SCHEMA ${this.schema} CASCADE`);
  }
}

describe('a cancel', () => {
  it('of a job that a claim takes meanwhile asks the running job to stop', async () => {
    await using two = await Two.open();
    const id = await enqueueOne(two.other);
    const open = await two.begin(/claim/, (store) => claim(store));
    expect(await two.commitWhenBlocked(open, (store) => store.cancel([id]))).toEqual([{ id, result: 'cancelling' }]);
    expect(idsOf((await open.answer).jobs)).toEqual([id]);
  });

  it('of a job that ends meanwhile answers that it has ended', async () => {
    await using two = await Two.open();
    const job = await startOne(two.late);
    const open = await two.begin(/settle|complete/, (store) => store.settle([settlement(job, complete)]));
    const answer = await two.commitWhenBlocked(open, (store) => store.cancel([job.id]));
    expect(answer).toEqual([{ id: job.id, result: 'already-ended' }]);
  });

  it('of a job that is redriven meanwhile finds it, dead or waiting', async () => {
    await using two = await Two.open();
    const id = await bury(two.other);
    const open = await two.begin(/redrive/, (store) => store.redrive({ ids: [id], attempts: 'reset', dryRun: false }));
    const answer = two.other.cancel([id]);
    open.commit();
    expect(only(await answer).result).toMatch(/^(already-ended|cancelled)$/);
    expect(idsOf((await two.other.get([id])) ?? [])).toEqual([id]);
  });
});

describe('a key', () => {
  const keyed = (changes: Partial<NewJob> = {}): NewJob => newJob({ key: 'k', ...changes });

  it('that another enqueue takes meanwhile yields the job of that enqueue', async () => {
    await using two = await Two.open();
    const job = keyed();
    const open = await two.begin(/enqueue/, (store) => store.enqueue([job]));
    const answer = await two.commitWhenBlocked(open, (store) => store.enqueue([keyed()]));
    expect(answer).toEqual([{ id: job.id, existed: true }]);
  });

  it('whose holder ends meanwhile goes to the new job', async () => {
    await using two = await Two.open();
    const job = await startOne(two.late, { key: 'k' });
    const open = await two.begin(/settle|complete/, (store) => store.settle([settlement(job, complete)]));
    const next = keyed();
    const answer = two.other.enqueue([next]);
    open.commit();
    const { id, existed } = only(await answer);
    // Before the commit the holder lives, after it the key is free; a key without a job is neither.
    expect([job.id, next.id]).toContain(id);
    expect(existed).toBe(id === job.id);
    const later = keyed();
    const holder = id === next.id ? next.id : later.id;
    expect(only(await two.other.enqueue([later])).id).toBe(holder);
  });

  it('that an enqueue takes meanwhile is not taken by a redrive', async () => {
    await using two = await Two.open();
    const dead = await bury(two.other, { key: 'k' });
    const job = keyed();
    const open = await two.begin(/enqueue/, (store) => store.enqueue([job]));
    const answer = await two.commitWhenBlocked(open, (store) =>
      store.redrive({ ids: [dead], attempts: 'reset', dryRun: false }),
    );
    expect(answer.ids).toEqual([]);
    expect((await two.other.get([dead]))[0]?.state).toBe('dead');
  });

  it('that two redrives want at once goes to one of them', async () => {
    await using two = await Two.open();
    const first = await bury(two.other, { key: 'k' });
    const second = await bury(two.other, { key: 'k' });
    const redrive = (id: string) => (store: Store) => store.redrive({ ids: [id], attempts: 'reset', dryRun: false });
    const open = await two.begin(/redrive/, redrive(first));
    expect((await two.commitWhenBlocked(open, redrive(second))).ids).toEqual([]);
    expect((await open.answer).ids).toEqual([first]);
  });
});

describe('a dead job', () => {
  it('that two redrives choose at once is redriven once', async () => {
    await using two = await Two.open();
    const id = await bury(two.other);
    const redrive = (store: Store) => store.redrive({ ids: [id], attempts: 'reset', dryRun: false });
    const open = await two.begin(/redrive/, redrive);
    expect((await two.commitWhenBlocked(open, redrive)).ids).toEqual([]);
    expect((await open.answer).ids).toEqual([id]);
    expect(idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([id]);
  });

  it('that is redriven meanwhile is not discarded', async () => {
    await using two = await Two.open();
    const id = await bury(two.other);
    const open = await two.begin(/redrive/, (store) => store.redrive({ ids: [id], attempts: 'reset', dryRun: false }));
    expect(await two.commitWhenBlocked(open, (store) => store.discard({ ids: [id] }))).toEqual([]);
    expect(idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([id]);
  });

  it('that is discarded meanwhile is not redriven', async () => {
    await using two = await Two.open();
    const id = await bury(two.other);
    const open = await two.begin(/discard/, (store) => store.discard({ ids: [id] }));
    const answer = await two.commitWhenBlocked(open, (store) =>
      store.redrive({ ids: [id], attempts: 'reset', dryRun: false }),
    );
    expect(answer.ids).toEqual([]);
    expect(await two.other.get([id])).toEqual([]);
  });
});

describe('a claim', () => {
  it('does not wait for jobs that another claim is taking', async () => {
    await using two = await Two.open();
    const ids = idsOf(await two.other.enqueue(newJobs(2)));
    const open = await two.begin(/claim/, (store) => claim(store, { limit: 1 }));
    const second = await claim(two.other, { limit: 2 });
    open.commit();
    const first = await open.answer;
    expect([...idsOf(first.jobs), ...idsOf(second.jobs)].sort()).toEqual(ids.sort());
  });

  it('counts the retries that another claim is starting against maxRetriesInFlight', async () => {
    await using two = await Two.open();
    await enqueueInLane(two.other, 'retry', 2);
    const capped = { limit: 1, queues: [quota({ maxRetriesInFlight: 1 })] };
    const open = await two.begin(/claim/, (store) => claim(store, capped));
    const second = claim(two.other, capped);
    setImmediate(() => open.commit());
    expect((await second).jobs).toEqual([]);
    expect((await open.answer).jobs).toHaveLength(1);
  });

  it('finds a job that is committed after later jobs of its partition were claimed', async () => {
    await using two = await Two.open();
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
    await expect.poll(async () => idsOf((await claim(two.other, { limit: 10 })).jobs)).toEqual([early.id]);
  });

  it('finds the jobs of a new partition that is committed after a newer partition was read', async () => {
    await using two = await Two.open();
    const early = newJob({ resource: 'early' });
    const newer = newJob({ resource: 'newer' });
    const open = await two.begin(/enqueue|partition/, (store) => store.enqueue([early]));
    const enqueued = two.other.enqueue([newer]);
    setTimeout(() => open.commit(), 50);
    await enqueued;
    await open.answer;
    const found: string[] = [];
    await expect
      .poll(async () => {
        found.push(...idsOf((await claim(two.other, { limit: 10 })).jobs));
        return [...found].sort();
      })
      .toEqual([early.id, newer.id].sort());
  });

  it('starts one suspect of a queue when two workers ask for one at once', async () => {
    await using two = await Two.open();
    await enqueueInLane(two.other, 'suspect', 2);
    // So that it knows the partition of the suspects, and its claim for one is a single statement.
    await claim(two.late);
    const asks = { limit: 1, queues: [quota({ suspect: 1 })] };
    const open = await two.begin(/claim/, (store) => claim(store, asks));
    const second = claim(two.other, asks);
    setImmediate(() => open.commit());
    expect((await second).jobs).toEqual([]);
    expect((await open.answer).jobs).toHaveLength(1);
  });
});

describe('a settlement', () => {
  it('of a worker and of a rescuer at once is written once', async () => {
    await using two = await Two.open();
    const job = await startOne(two.late);
    await two.advance(LEASE + 1_000);
    const open = await two.begin(/settle|complete/, (store) => store.settle([settlement(job, complete)]));
    const answer = await two.commitWhenBlocked(open, (store) => store.settle([crash(job)]));
    expect(answer).toEqual(['stale']);
    expect(await two.other.runs(job.id)).toHaveLength(1);
  });

  it('as crashed is stale when a heartbeat that is being written keeps the lease', async () => {
    await using two = await Two.open();
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
    await using two = await Two.open();
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
    await using two = await Two.open();
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

  it('is found for jobs whose lease a look for others has passed over and a heartbeat has moved', async () => {
    await using two = await Two.open();
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

describe('a hold', () => {
  it('of a resource holds a partition that is created meanwhile', async () => {
    await using two = await Two.open();
    const open = await two.begin(/enqueue|partition/, (store) => store.enqueue([newJob({ resource: 'r' })]));
    const held = two.other.hold({ resource: 'r' }, null);
    setTimeout(() => open.commit(), 50);
    await held;
    await open.answer;
    expect((await claim(two.other, { limit: 10 })).jobs).toEqual([]);
    await two.other.release({ resource: 'r' });
    expect((await claim(two.other, { limit: 10 })).jobs).toHaveLength(1);
  });

  it('that is being written holds a partition that is created after it', async () => {
    await using two = await Two.open();
    const open = await two.begin(/hold/, (store) => store.hold({ resource: 'r' }, null));
    const enqueued = two.other.enqueue([newJob({ resource: 'r' })]);
    setTimeout(() => open.commit(), 50);
    await enqueued;
    await open.answer;
    expect((await claim(two.other, { limit: 10 })).jobs).toEqual([]);
    await two.other.release({ resource: 'r' });
    expect((await claim(two.other, { limit: 10 })).jobs).toHaveLength(1);
  });
});

describe('an interned string', () => {
  it('that two processes store at once is stored once', async () => {
    await using two = await Two.open();
    const job = (): NewJob => newJob({ name: 'new-name', queue: 'new-queue' });
    await Promise.all([two.late.enqueue([job()]), two.other.enqueue([job()])]);
    const claimed = await claimOne(two.other, { queues: [quota({ queue: 'new-queue' })] });
    expect(claimed.name).toBe('new-name');
    const { rows } = await two.other.stats();
    expect(rows.filter(({ name }) => name === 'new-name')).toHaveLength(1);
  });
});
