import assert from 'node:assert/strict';
import type { ClaimedJob, NewJob, Store } from '../store.ts';
import { CLAIM_BYTES } from '../store.ts';
import {
  bury,
  claim,
  claimOne,
  complete,
  countLanes,
  enqueueInLane,
  enqueueOne,
  giveBack,
  HOUR,
  hostileTexts,
  idsOf,
  MINUTE,
  newJob,
  newJobs,
  pruneWith,
  quota,
  redrive,
  retryIn,
  settlement,
  settleOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

/** Due retries of one job name. Call it before fresh jobs wait in the queue. */
async function retriesOf(store: Store, name: string, count: number): Promise<string[]> {
  await store.enqueue(newJobs(count, { name }));
  const { jobs } = await claim(store, { limit: count });
  assert.equal(jobs.length, count);
  await store.settle(jobs.map((job) => settlement(job, retryIn(0))));
  return idsOf(jobs);
}

function countBy(jobs: readonly ClaimedJob[], of: (job: ClaimedJob) => string | null): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const job of jobs) counts[String(of(job))] = (counts[String(of(job))] ?? 0) + 1;
  return counts;
}

const names: StoreCase[] = cases('partitions', {
  'a name with many due retries leaves the retries of another name their turn': async ({ store, advance }) => {
    await retriesOf(store, 'stormy', 50);
    await advance(MINUTE);
    const [healthy] = await retriesOf(store, 'healthy', 1);
    const { jobs } = await claim(store, { limit: 4 });
    assert.equal(jobs.length, 4);
    assert.ok(idsOf(jobs).includes(healthy as string), 'the retry that fell due last waits for its own name only');
  },

  'names share the places of their lane equally, and one lends the others what it leaves': async ({ store }) => {
    for (const [name, count] of Object.entries({ a: 10, b: 10, c: 1 })) await retriesOf(store, name, count);
    const { jobs } = await claim(store, { limit: 9 });
    assert.deepEqual(
      countBy(jobs, ({ name }) => name),
      { a: 4, b: 4, c: 1 },
    );
    const rest = await claim(store, { limit: 100 });
    assert.deepEqual(
      countBy(rest.jobs, ({ name }) => name),
      { a: 6, b: 6 },
    );
  },

  'names take turns when claims take one job at a time': async ({ store, advance }) => {
    await retriesOf(store, 'a', 3);
    await advance(MINUTE);
    await retriesOf(store, 'b', 3);
    const turns: string[] = [];
    for (let turn = 0; turn < 6; turn++) {
      turns.push((await claimOne(store)).name);
      await advance(1);
    }
    for (let at = 0; at < 6; at += 2) assert.deepEqual([...turns.slice(at, at + 2)].sort(), ['a', 'b']);
  },

  'redriven jobs of one name leave those of another their turn': async ({ store, advance }) => {
    const ids: string[] = [];
    for (let count = 0; count < 10; count++) ids.push(await bury(store, { name: 'stormy' }));
    await redrive(store, { ids });
    await advance(MINUTE);
    // Its own queue, so that the redriven ones are not due first.
    const other = await bury(store, { name: 'healthy', queue: 'elsewhere' });
    await redrive(store, { ids: [other] });
    const queues = ['default', 'elsewhere'].map((queue) => quota({ queue, share: 2 }));
    assert.ok(idsOf((await claim(store, { limit: 4, queues })).jobs).includes(other));
  },

  'fresh jobs of different names come in due order': async ({ store, advance }) => {
    const ids: string[] = [];
    for (let made = 0; made < 6; made++) {
      ids.push(await enqueueOne(store, { name: made % 2 === 0 ? 'a' : 'b' }));
      await advance(1);
    }
    assert.deepEqual(idsOf((await claim(store, { limit: 3 })).jobs), ids.slice(0, 3));
    assert.deepEqual(idsOf((await claim(store, { limit: 3 })).jobs), ids.slice(3));
  },

  'inside a name retries come in due order': async ({ store, advance }) => {
    const first = await retriesOf(store, 'a', 2);
    await advance(MINUTE);
    const second = await retriesOf(store, 'a', 2);
    assert.deepEqual(idsOf((await claim(store, { limit: 3 })).jobs), [...first, second[0]]);
  },
});

/** A name whose keys strangers choose: so many hosts with so many due jobs each. */
function hooks(hosts: number, each: number): NewJob[] {
  return Array.from({ length: hosts * each }, (_, index) =>
    newJob({ name: 'hook.send', resource: `hook/${index % hosts}` }),
  );
}

const few = 10;
/** More than any store reads at a time. */
const many = 150;

/** What a name of one key, or of none, gets beside one of many keys, in claims of several jobs, and then in claims of one. */
async function shareBeside(
  store: Store,
  hosts: number,
  resource: string | null,
  lane: 'fresh' | 'retry',
): Promise<void> {
  // The others were accepted first, and are due first.
  await store.enqueue([...hooks(hosts, Math.ceil(120 / hosts)), ...newJobs(120, { name: 'invoice', resource })]);
  if (lane === 'retry') {
    const taken: ClaimedJob[] = [];
    for (let last = 1; last > 0; ) {
      const { jobs } = await claim(store, { limit: 1_000 });
      last = jobs.length;
      taken.push(...jobs);
    }
    await store.settle(taken.map((job) => settlement(job, retryIn(0))));
  }
  const names: string[] = [];
  const take = async (limit: number): Promise<void> => {
    const { jobs } = await claim(store, { limit });
    assert.equal(jobs.length, limit);
    names.push(...jobs.map(({ name }) => name));
  };
  // A store may find out in its first claims how much it must read.
  for (let claims = 0; claims < 4; claims++) await take(10);
  names.splice(0);
  for (let claims = 0; claims < 6; claims++) await take(10);
  for (let claims = 0; claims < 20; claims++) await take(1);
  const invoices = names.filter((name) => name === 'invoice').length;
  assert.ok(Math.abs(invoices - 40) <= 4, `${invoices} of 80 are of the name without many keys`);
}

const lines: StoreCase[] = cases('partitions', {
  'the keys of a resource do not take the turns of jobs without one': async ({ store }) => {
    await shareBeside(store, few, null, 'fresh');
  },

  'many keys of a resource do not take the turns of jobs without one': async ({ store }) => {
    await shareBeside(store, many, null, 'fresh');
  },

  'the keys of a resource do not take the turns of a resource with one key': async ({ store }) => {
    await shareBeside(store, few, 'mail/a', 'fresh');
  },

  'many keys of a resource do not take the turns of a resource with one key': async ({ store }) => {
    await shareBeside(store, many, 'mail/a', 'fresh');
  },

  'retries of a name with keys do not take the turns of a name without': async ({ store }) => {
    await shareBeside(store, few, null, 'retry');
  },

  'retries of a name with many keys do not take the turns of a name without': async ({ store }) => {
    await shareBeside(store, many, null, 'retry');
  },

  'retries of a name with many keys do not take the turns of a name with one key of the same resource': async ({
    store,
  }) => {
    await shareBeside(store, many, 'hook/0', 'retry');
  },

  'the keys of one name take turns among themselves': async ({ store }) => {
    await store.enqueue([...hooks(4, 10), ...newJobs(40, { name: 'invoice' })]);
    const claimed: ClaimedJob[] = [];
    for (let claims = 0; claims < 16; claims++) claimed.push(await claimOne(store));
    const counts = countBy(claimed, ({ resource }) => resource);
    assert.deepEqual(counts, { 'hook/0': 2, 'hook/1': 2, 'hook/2': 2, 'hook/3': 2, null: 8 });
  },

  'a key that comes and goes does not take the turns of a key that stays': async ({ store, advance }) => {
    await store.enqueue(newJobs(30, { resource: 'hook/stays' }));
    let stayed = 0;
    for (let claims = 0; claims < 30; claims++) {
      await store.enqueue([newJob({ resource: `hook/${claims}` })]);
      if ((await claimOne(store)).resource === 'hook/stays') stayed++;
      await advance(1);
    }
    assert.ok(stayed >= 5, `${stayed} of 30 were of the key that stays`);
  },
});

const resources: StoreCase[] = cases('partitions', {
  'resources of one priority share the places of a claim': async ({ store }) => {
    for (const resource of ['smtp', 'http', null]) await store.enqueue(newJobs(10, { resource }));
    const { jobs } = await claim(store, { limit: 9 });
    assert.deepEqual(
      countBy(jobs, ({ resource }) => resource),
      { smtp: 3, http: 3, null: 3 },
    );
  },

  'the lowest priority number comes first, whatever the resource': async ({ store }) => {
    await store.enqueue([...newJobs(3, { resource: 'smtp' }), ...newJobs(3, { resource: 'http', priority: 1 })]);
    const { jobs } = await claim(store, { limit: 4 });
    assert.deepEqual(
      countBy(jobs, ({ resource }) => resource),
      { http: 3, smtp: 1 },
    );
  },

  'a retry waits with its resource': async ({ store }) => {
    await store.enqueue([newJob({ resource: 'smtp' })]);
    const job = await claimOne(store);
    await settleOne(store, job, retryIn(0));
    await store.hold({ resource: 'smtp' }, null);
    assert.deepEqual((await claim(store)).jobs, []);
    await store.release({ resource: 'smtp' });
    assert.deepEqual(idsOf((await claim(store)).jobs), [job.id]);
  },

  'a held resource with a due retry does not keep a claim with maxRetriesInFlight from others': async ({ store }) => {
    await store.enqueue([newJob({ resource: 'smtp' })]);
    await settleOne(store, await claimOne(store), retryIn(0));
    await store.hold({ resource: 'smtp' }, null);
    const id = await enqueueOne(store);
    const queues = [quota({ retry: 5, maxRetriesInFlight: 5 })];
    assert.deepEqual(idsOf((await claim(store, { queues })).jobs), [id]);
  },

  'fresh jobs come before retries that no place is kept for, also beside many empty partitions': async ({ store }) => {
    await store.enqueue(Array.from({ length: 9 }, (_, priority) => newJob({ priority })));
    const { jobs } = await claim(store, { limit: 9 });
    await store.settle(jobs.map((job, index) => settlement(job, index === 8 ? retryIn(0) : complete)));
    await store.enqueue(Array.from({ length: 3 }, () => newJob({ priority: 8 })));
    const queues = [quota({ share: 3, retry: 0 })];
    assert.deepEqual(
      countBy((await claim(store, { limit: 3, queues })).jobs, ({ lane }) => lane),
      { fresh: 3 },
    );
  },

  'many resources with one job each are all served': async ({ store }) => {
    const jobs = Array.from({ length: 300 }, (_, index) => newJob({ resource: `host-${index}` }));
    await store.enqueue(jobs);
    const claimed: string[] = [];
    for (let left = 300; left > 0; ) {
      const batch = (await claim(store, { limit: 50 })).jobs;
      assert.equal(batch.length, 50);
      claimed.push(...idsOf(batch));
      left -= batch.length;
    }
    assert.deepEqual([...claimed].sort(), idsOf(jobs).sort());
    assert.deepEqual((await claim(store)).jobs, []);
  },

  'every job that a claim starts is handed out, also among many resources': async ({ store }) => {
    for (let round = 0; round < 3; round++) {
      await store.enqueue(Array.from({ length: 100 }, (_, index) => newJob({ resource: `host-${index}` })));
    }
    const claimed = new Set<string>();
    for (;;) {
      const { jobs } = await claim(store, { limit: 10 });
      if (jobs.length === 0) break;
      for (const { id } of jobs) claimed.add(id);
    }
    const running = await store.list({ state: 'running', limit: 1_000 });
    assert.deepEqual([claimed.size, running.length], [300, 300]);
  },

  'the retries of many names all start': async ({ store }) => {
    await store.enqueue(Array.from({ length: 100 }, (_, index) => newJob({ name: `name-${index}` })));
    const { jobs } = await claim(store, { limit: 100 });
    assert.equal(jobs.length, 100);
    await store.settle(jobs.map((job) => settlement(job, retryIn(0))));
    const retried = new Set<string>();
    for (let claims = 0; claims < 100 && retried.size < 100; claims++) {
      for (const { id } of (await claim(store, { limit: 10 })).jobs) retried.add(id);
    }
    assert.equal(retried.size, 100);
  },

  'a job is found among many resources whose jobs fall due later': async ({ store, advance }) => {
    await store.enqueue(
      Array.from({ length: 200 }, (_, index) => newJob({ resource: `host-${index}`, delayMs: HOUR + index })),
    );
    assert.deepEqual((await claim(store)).jobs, []);
    const id = await enqueueOne(store, { resource: 'host-150' });
    assert.deepEqual(idsOf((await claim(store)).jobs), [id]);
    await advance(2 * HOUR);
    assert.equal((await claim(store, { limit: 1_000 })).jobs.length, 200);
  },

  'a resource that ran empty is served again when it has work': async ({ store, advance }) => {
    for (let round = 0; round < 3; round++) {
      const id = await enqueueOne(store, { resource: 'smtp' });
      const job = await claimOne(store);
      assert.equal(job.id, id);
      await settleOne(store, job, complete);
      assert.deepEqual((await claim(store)).jobs, []);
      await pruneWith(store, { completedMs: 0, deadMs: null, cancelledMs: null }, 100);
      await advance(HOUR);
    }
  },

  'a job that is given back is served again, though its partition was empty': async ({ store }) => {
    const id = await enqueueOne(store, { resource: 'smtp' });
    const job = await claimOne(store);
    assert.deepEqual((await claim(store)).jobs, []);
    await settleOne(store, job, giveBack('release'));
    assert.deepEqual(idsOf((await claim(store)).jobs), [id]);
  },
});

const holds: StoreCase[] = cases('hold', {
  'jobs of a held resource wait, and the others go on': async ({ store }) => {
    const held = await enqueueOne(store, { resource: 'smtp' });
    const others = [await enqueueOne(store, { resource: 'http' }), await enqueueOne(store)];
    await store.hold({ resource: 'smtp' }, null);
    assert.deepEqual(idsOf((await claim(store)).jobs).sort(), [...others].sort());
    const later = await enqueueOne(store, { resource: 'smtp' });
    assert.deepEqual((await claim(store)).jobs, []);
    await store.release({ resource: 'smtp' });
    assert.deepEqual(idsOf((await claim(store)).jobs), [held, later]);
  },

  'a hold ends at its time by itself': async ({ store, advance }) => {
    const id = await enqueueOne(store, { resource: 'smtp' });
    const { now } = await claim(store, { queues: [quota({ queue: 'empty' })] });
    await store.hold({ resource: 'smtp' }, now + HOUR);
    const answer = await claim(store);
    assert.deepEqual([answer.jobs, answer.nextDueAt], [[], now + HOUR]);
    await advance(2 * HOUR);
    assert.deepEqual(idsOf((await claim(store)).jobs), [id]);
  },

  'a held queue tells when its hold ends or its first job falls due, whichever comes later': async ({ store }) => {
    await enqueueOne(store, { delayMs: 2 * HOUR });
    const { now, nextDueAt } = await claim(store);
    await store.hold({ queue: 'default' }, now + HOUR);
    assert.equal((await claim(store)).nextDueAt, nextDueAt);
    await store.hold({ queue: 'default' }, now + 3 * HOUR);
    assert.equal((await claim(store)).nextDueAt, now + 3 * HOUR);
  },

  'a later hold of the same target replaces the earlier one': async ({ store, advance }) => {
    await enqueueOne(store, { resource: 'smtp' });
    const { now } = await claim(store, { queues: [quota({ queue: 'empty' })] });
    await store.hold({ resource: 'smtp' }, null);
    await store.hold({ resource: 'smtp' }, now + MINUTE);
    await advance(HOUR);
    assert.equal((await claim(store)).jobs.length, 1);
  },

  'a job starts when neither its queue nor its resource is held': async ({ store }) => {
    await enqueueOne(store, { resource: 'smtp' });
    await store.hold({ resource: 'smtp' }, null);
    await store.hold({ queue: 'default' }, null);
    await store.release({ resource: 'smtp' });
    assert.deepEqual((await claim(store)).jobs, []);
    await store.release({ queue: 'default' });
    assert.equal((await claim(store)).jobs.length, 1);
  },

  'a resource is held in every queue, lane and priority': async ({ store }) => {
    await store.enqueue([newJob({ resource: 'smtp' }), newJob({ resource: 'smtp', priority: 0, queue: 'b' })]);
    const queues = [quota(), quota({ queue: 'b' })];
    const [job] = (await claim(store, { limit: 1, queues })).jobs as [ClaimedJob];
    await settleOne(store, job, retryIn(0));
    await store.hold({ resource: 'smtp' }, null);
    assert.deepEqual((await claim(store, { queues })).jobs, []);
    await store.release({ resource: 'smtp' });
    assert.equal((await claim(store, { queues })).jobs.length, 2);
  },

  'a queue that is held for a time is not reported as paused': async ({ store }) => {
    await enqueueOne(store);
    const { now } = await claim(store, { queues: [quota({ queue: 'empty' })] });
    await store.hold({ queue: 'default' }, now + HOUR);
    assert.deepEqual(
      (await store.queues()).map(({ paused }) => paused),
      [false],
    );
  },

  'resources of any name can be held, and a queue of the same name is another target': async ({ store }) => {
    for (const text of hostileTexts) {
      const id = await enqueueOne(store, { queue: text, resource: text });
      const free = await enqueueOne(store, { queue: text });
      await store.hold({ resource: text }, null);
      assert.deepEqual(idsOf((await claim(store, { queues: [quota({ queue: text })] })).jobs), [free]);
      await store.release({ resource: text });
      assert.deepEqual(idsOf((await claim(store, { queues: [quota({ queue: text })] })).jobs), [id]);
    }
  },
});

/** JSON text of about so many bytes. */
function payloadOf(bytes: number): string {
  return JSON.stringify('x'.repeat(bytes - 2));
}

const bytes: StoreCase[] = cases('claim', {
  'a claim stops when the payloads it takes would grow beyond its bytes, and says that more is due': async ({
    store,
  }) => {
    const payload = payloadOf(CLAIM_BYTES / 8);
    for (let made = 0; made < 20; made++) await store.enqueue([newJob({ payload })]);
    const first = await claim(store);
    assert.deepEqual([first.jobs.length, first.nextDueAt], [8, first.now]);
    assert.equal((await claim(store)).jobs.length, 8);
    const last = await claim(store);
    assert.deepEqual([last.jobs.length, last.nextDueAt], [4, null]);
  },

  'a job that is larger than a claim may be travels alone': async ({ store }) => {
    const large = await enqueueOne(store, { payload: payloadOf(CLAIM_BYTES + 100), priority: 1 });
    const small = await enqueueOne(store, { priority: 2 });
    const first = await claim(store);
    assert.deepEqual([idsOf(first.jobs), first.nextDueAt], [[large], first.now]);
    assert.deepEqual(idsOf((await claim(store)).jobs), [small]);
  },

  'a large job is not overtaken for ever by small ones': async ({ store }) => {
    const small = await enqueueOne(store, { priority: 1 });
    const large = await enqueueOne(store, { payload: payloadOf(CLAIM_BYTES), priority: 2 });
    await store.enqueue(newJobs(5, { priority: 3 }));
    assert.deepEqual(idsOf((await claim(store)).jobs), [small]);
    assert.deepEqual(idsOf((await claim(store)).jobs), [large]);
    assert.equal((await claim(store)).jobs.length, 5);
  },

  'a claim that stopped by bytes has shared its places all the same': async ({ store }) => {
    await enqueueInLane(store, 'retry', 5);
    const payload = payloadOf(CLAIM_BYTES / 4);
    for (let made = 0; made < 6; made++) await store.enqueue([newJob({ payload })]);
    const { jobs } = await claim(store, { limit: 10, queues: [quota({ retry: 2 })] });
    assert.deepEqual(countLanes(jobs), { retry: 2, fresh: 3 });
  },
});

export const partitionCases: readonly StoreCase[] = [...names, ...lines, ...resources, ...holds, ...bytes];
