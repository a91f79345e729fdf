import assert from 'node:assert/strict';
import type { NewJob, Schedule, ScheduleWrite, ScheduleWritten, Store } from '../store.ts';
import { claim, enqueueOne, HOUR, hostileTexts, idsOf, MINUTE, newJob, only, quota, timeOf } from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

let versions = 0;

export function schedule(changes: Partial<Schedule> = {}): Schedule {
  const { id: _id, delayMs: _delayMs, dueAt: _dueAt, ...job } = newJob();
  return {
    name: 'nightly',
    version: `version-${++versions}`,
    nextAt: HOUR,
    timing: { kind: 'every', everyMs: HOUR, anchor: 0 },
    job,
    misfire: 'once',
    misfireLimit: 100,
    paused: false,
    lastAt: null,
    code: null,
    updatedAt: 0,
    ...changes,
  };
}

/** Writes the next version of a schedule, or its first. */
async function put(store: Store, to: Schedule, from: Schedule | null = null, jobs: readonly NewJob[] = []) {
  const answer = await store.writeSchedule({ name: to.name, from: from?.version ?? null, to, jobs });
  assert.equal(answer.written, true);
  return to;
}

async function read(store: Store, name = 'nightly'): Promise<Schedule | null> {
  return (await store.schedules({ names: [name], limit: 1 })).schedules[0] ?? null;
}

const refused: ScheduleWritten = { written: false, jobs: [] };

export const scheduleCases: readonly StoreCase[] = [
  ...cases('schedules', {
    'a schedule is read back as it was written': async ({ store }) => {
      const written = await put(store, schedule({ code: 'abc', lastAt: 1, paused: true, nextAt: null }));
      assert.deepEqual(await read(store), written);
    },

    'schedules come by name, in pages': async ({ store }) => {
      for (const name of ['c', 'a', 'b']) await put(store, schedule({ name }));
      const first = await store.schedules({ limit: 2 });
      assert.deepEqual(namesOf(first.schedules), ['a', 'b']);
      assert.deepEqual(namesOf((await store.schedules({ limit: 2, after: 'b' })).schedules), ['c']);
      assert.deepEqual(namesOf((await store.schedules({ names: ['c', 'b', 'x'], limit: 9 })).schedules), ['b', 'c']);
    },

    'the soonest come first, and those without a next tick do not come': async ({ store }) => {
      await put(store, schedule({ name: 'late', nextAt: 3_000 }));
      await put(store, schedule({ name: 'never', nextAt: null }));
      await put(store, schedule({ name: 'early', nextAt: 1_000 }));
      await put(store, schedule({ name: 'middle', nextAt: 2_000 }));
      const { schedules } = await store.schedules({ soonest: true, limit: 2 });
      assert.deepEqual(namesOf(schedules), ['early', 'middle']);
    },

    'an answer tells the time of the store, also when there is no schedule': async ({ store, advance }) => {
      const before = (await store.schedules({ soonest: true, limit: 1 })).now;
      await advance(10 * MINUTE);
      const { now, schedules } = await store.schedules({ limit: 1 });
      assert.deepEqual(schedules, []);
      assert.ok(now >= before + 10 * MINUTE && now <= (await timeOf(store)));
    },
  }),

  ...cases('writeSchedule', {
    'a write moves the schedule and stores its jobs': async ({ store }) => {
      const before = await put(store, schedule());
      const job = newJob();
      const after = schedule({ nextAt: 2 * HOUR });
      const answer = await store.writeSchedule({ name: 'nightly', from: before.version, to: after, jobs: [job] });
      assert.deepEqual(answer, { written: true, jobs: [{ id: job.id, existed: false }] });
      assert.deepEqual(await read(store), after);
      assert.deepEqual(idsOf((await claim(store)).jobs), [job.id]);
    },

    'a write from another version changes nothing and stores no job': async ({ store }) => {
      const first = await put(store, schedule());
      const second = await put(store, schedule({ nextAt: 2 * HOUR }), first);
      const late: ScheduleWrite = { name: 'nightly', from: first.version, to: schedule(), jobs: [newJob()] };
      assert.deepEqual(await store.writeSchedule(late), refused);
      assert.deepEqual(await store.writeSchedule({ ...late, to: null }), refused);
      assert.deepEqual(await store.writeSchedule({ ...late, from: null }), refused);
      assert.deepEqual(await read(store), second);
      assert.deepEqual((await claim(store)).jobs, []);
    },

    'of many that write from one version at once, one does': async ({ store }) => {
      const before = await put(store, schedule());
      const writes = Array.from({ length: 10 }, () => {
        const to = schedule({ nextAt: 2 * HOUR });
        return store.writeSchedule({ name: 'nightly', from: before.version, to, jobs: [newJob()] });
      });
      const answers = await Promise.all(writes);
      assert.equal(answers.filter(({ written }) => written).length, 1);
      assert.equal((await claim(store)).jobs.length, 1);
    },

    'of many that create one schedule at once, one does': async ({ store }) => {
      const writes = Array.from({ length: 10 }, () => schedule()).map((to) =>
        store.writeSchedule({ name: 'nightly', from: null, to, jobs: [] }),
      );
      assert.equal((await Promise.all(writes)).filter(({ written }) => written).length, 1);
    },

    'a write that is sent again changes nothing and answers the same': async ({ store }) => {
      const before = await put(store, schedule());
      const write = { name: 'nightly', from: before.version, to: schedule({ nextAt: null }), jobs: [newJob()] };
      const answer = await store.writeSchedule(write);
      assert.deepEqual(await store.writeSchedule(write), answer);
      assert.deepEqual(await read(store), write.to);
      assert.equal((await claim(store)).jobs.length, 1);
    },

    'a creation that is sent again is no second one': async ({ store }) => {
      const write = { name: 'nightly', from: null, to: schedule(), jobs: [] };
      assert.equal((await store.writeSchedule(write)).written, true);
      assert.equal((await store.writeSchedule(write)).written, true);
      await put(store, schedule({ nextAt: null }), write.to);
      assert.deepEqual(await store.writeSchedule(write), refused);
    },

    'a removed schedule is gone, and removing it again is no error': async ({ store }) => {
      const before = await put(store, schedule());
      const removal = { name: 'nightly', from: before.version, to: null, jobs: [] };
      assert.deepEqual(await store.writeSchedule(removal), { written: true, jobs: [] });
      assert.equal(await read(store), null);
      assert.deepEqual(await store.writeSchedule(removal), { written: true, jobs: [] });
    },

    'a tick of a schedule that was removed, or made again, stores no job': async ({ store }) => {
      const before = await put(store, schedule());
      await store.writeSchedule({ name: 'nightly', from: before.version, to: null, jobs: [] });
      const tick = { name: 'nightly', from: before.version, to: schedule(), jobs: [newJob()] };
      assert.deepEqual(await store.writeSchedule(tick), refused);
      const again = await put(store, schedule());
      assert.deepEqual(await store.writeSchedule(tick), refused);
      assert.deepEqual(await read(store), again);
      assert.deepEqual((await claim(store)).jobs, []);
    },

    'a schedule moves on when a live job holds the key of its job': async ({ store }) => {
      const holder = await enqueueOne(store, { key: 'schedule:nightly' });
      const before = await put(store, schedule());
      const to = schedule({ nextAt: 2 * HOUR });
      const jobs = [newJob({ key: 'schedule:nightly' }), newJob()];
      const answer = await store.writeSchedule({ name: 'nightly', from: before.version, to, jobs });
      const own = { id: (jobs[1] as NewJob).id, existed: false };
      assert.deepEqual(answer, { written: true, jobs: [{ id: holder, existed: true }, own] });
      assert.equal((await read(store))?.nextAt, 2 * HOUR);
      assert.equal((await claim(store)).jobs.length, 2);
    },

    'a write whose jobs are refused leaves the schedule as it was': async ({ store }) => {
      const before = await put(store, schedule());
      const jobs = [newJob({ payload: '{\n}' })];
      const write = { name: 'nightly', from: before.version, to: schedule({ nextAt: null }), jobs };
      await assert.rejects(store.writeSchedule(write));
      assert.deepEqual(await read(store), before);
    },

    'a job that is due at a tick of the past can be claimed': async ({ store, advance }) => {
      const { now } = await store.schedules({ limit: 1 });
      const earlier = await enqueueOne(store);
      await advance(HOUR);
      assert.deepEqual(idsOf((await claim(store)).jobs), [earlier]);
      const late = newJob({ dueAt: now + 10 * MINUTE });
      await put(store, schedule(), null, [late]);
      const claimed = only((await claim(store)).jobs);
      assert.deepEqual([claimed.id, claimed.dueAt], [late.id, now + 10 * MINUTE]);
    },

    'a write wakes workers, also without jobs': async ({ store }) => {
      const woken = new Promise<void>((resolve) => store.onWork(resolve));
      await put(store, schedule());
      await woken;
    },

    'jobs behind a resource can be claimed': async ({ store }) => {
      const job = newJob({ resource: 'smtp', queue: 'mail' });
      await put(store, schedule(), null, [job]);
      assert.deepEqual(idsOf((await claim(store, { queues: [quota({ queue: 'mail' })] })).jobs), [job.id]);
    },

    'jobs behind a full limit are refused or cancelled as if each was enqueued alone': async ({ store }) => {
      const at = { limit: 'shop', key: 'a' };
      const settings = { concurrency: 1, total: null, rate: null };
      await store.writeLimits([{ limit: at.limit, key: null, source: 'code', settings }]);
      const [first, second, third] = (['cancel-newest', 'cancel-newest', 'cancel-oldest'] as const).map((action) =>
        newJob({ limits: [at], onLimit: [{ ...at, action }] }),
      ) as [NewJob, NewJob, NewJob];
      const { jobs } = await store.writeSchedule({
        ...{ name: 'nightly', from: null, to: schedule() },
        jobs: [first, second, third],
      });
      assert.deepEqual(jobs, [
        { id: first.id, existed: false },
        { id: first.id, existed: true },
        { id: third.id, existed: false },
      ]);
      const found = await store.get([first.id, second.id, third.id]);
      assert.deepEqual(
        found.map(({ id, state }) => [id, state]),
        [
          [first.id, 'cancelled'],
          [third.id, 'ready'],
        ],
      );
    },

    'schedules of any name can be written': async ({ store }) => {
      for (const name of hostileTexts) {
        const written = await put(store, schedule({ name, code: name }));
        assert.deepEqual(await read(store, name), written);
      }
      assert.equal((await store.schedules({ limit: 100 })).schedules.length, hostileTexts.length);
    },
  }),
];

function namesOf(schedules: readonly Schedule[]): string[] {
  return schedules.map(({ name }) => name);
}
