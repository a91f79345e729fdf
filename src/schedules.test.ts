import { describe, expect, it } from 'vitest';
import { defineJob } from './definition.ts';
import { ConfigError, InputError } from './errors.ts';
import { Mulligan, type MulliganOptions } from './mulligan.ts';
import type { LogEntry } from './observe/log.ts';
import type { ScheduleDefinition, ScheduleOptions } from './schedule-options.ts';
import { MemoryStore } from './store/memory/store.ts';
import type { Schedule, Store } from './store/store.ts';
import { testQueue } from './testing/queue.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

const MINUTE = 60_000;
const HOUR = 3_600_000;
/** The clock of a test begins here. */
const START = Date.parse('2026-01-01T00:00:00Z');

const report = defineJob<{ kind: string }>({
  name: 'report',
  queue: 'reports',
  priority: 3,
  retry: { maxAttempts: 2 },
  resource: 'printer',
  run: () => {},
});

/** A queue without workers. */
async function opened(options: MulliganOptions = {}) {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const open = (more: MulliganOptions = {}): Promise<Mulligan> =>
    Mulligan.open(keptOpen(store), { clock, log: () => {}, ...options, ...more });
  const mulligan = await open();
  const stored = async (name: string): Promise<Schedule> =>
    (await store.schedules({ names: [name], limit: 1 })).schedules[0] as Schedule;
  return { clock, store, open, mulligan, schedules: mulligan.schedules, stored };
}

/** Several queues are opened on one store. */
function keptOpen(store: Store): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const member = target[name];
      return name === 'close' ? async () => {} : typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

describe('schedules.set', () => {
  it('stores a schedule with a job as its definition makes it', async () => {
    const { schedules, stored } = await opened({ hardCap: 9 });
    const info = await schedules.set('daily', report, { kind: 'sales' }, { cron: '0 3 * * *', timezone: 'Asia/Tokyo' });
    expect(info).toEqual({
      name: 'daily',
      job: 'report',
      input: { kind: 'sales' },
      queue: 'reports',
      priority: 3,
      timing: { kind: 'cron', cron: '0 3 * * *', timezone: 'Asia/Tokyo' },
      misfire: 'once',
      misfireLimit: 100,
      overlap: 'allow',
      paused: false,
      nextAt: Date.parse('2026-01-01T18:00:00Z'),
      lastAt: null,
      lastJobId: null,
      source: 'stored',
      updatedAt: START,
    });
    const { job } = await stored('daily');
    expect(job).toMatchObject({ name: 'report', resource: 'printer', payload: '{"kind":"sales"}', key: null });
    expect(job.policy.maxAttempts).toBe(2);
  });

  it('takes the queue, priority, retry policy and tags of its jobs', async () => {
    const { schedules, stored } = await opened();
    const job = { queue: 'q', priority: 0, retry: { maxAttempts: 1 }, tags: ['team:a'] };
    const options = { every: '1h', ...job, overlap: 'skip' } as const;
    expect(await schedules.set('s', report, { kind: 'a' }, options)).toMatchObject({ queue: 'q', overlap: 'skip' });
    expect((await stored('s')).job).toMatchObject({ priority: 0, tags: ['team:a'], key: 'schedule:s' });
  });

  it('changes the schedule of this name; a tick that is due already stays due when the times are the same', async () => {
    const { schedules, clock } = await opened();
    await schedules.set('s', 'job', {}, { every: '1h' });
    await clock.advance(2 * HOUR);
    expect(await schedules.set('s', 'other', 7, { every: '1h' })).toMatchObject({ job: 'other', nextAt: START + HOUR });
    expect(await schedules.set('s', 'other', 7, { every: '1d' })).toMatchObject({ nextAt: START + 24 * HOUR });
    expect(await schedules.list()).toHaveLength(1);
  });

  it('leaves a paused schedule paused', async () => {
    const { schedules } = await opened();
    await schedules.set('s', 'job', {}, { every: '1h' });
    await schedules.pause('s');
    expect(await schedules.set('s', 'job', {}, { every: '2h' })).toMatchObject({ paused: true, nextAt: null });
    expect(await schedules.resume('s')).toMatchObject({ paused: false, nextAt: START + 2 * HOUR });
  });

  it.each<[string, unknown, unknown, RegExp]>([
    [
      'a time that has passed',
      's',
      { at: new Date(START) },
      /at: expected a time in the future, got "2026-01-01T00:00/,
    ],
    ['a pattern that never matches', 's', { cron: '0 0 30 2 *' }, /cron: expected a pattern that matches at some time/],
    ['a bad pattern', 's', { cron: '0 0 * * 9' }, /The day of the week is wrong \("9"\)/],
    ['an unknown option', 's', { crn: '* * * * *' }, /there is no option "crn". Did you mean cron\?/],
    ['an unknown policy', 's', { every: '1m', misfire: 'none' }, /misfire: expected one of skip, once, all/],
    ['an unknown overlap', 's', { every: '1m', overlap: 'no' }, /overlap: expected one of allow, skip/],
    ['a limit of none', 's', { every: '1m', misfireLimit: 0 }, /misfireLimit: expected a whole number from 1/],
    ['an empty name', '', { every: '1m' }, /schedules.set: name: expected a text/],
    ['a long name', 'x'.repeat(191), { every: '1m' }, /at most 190 characters/],
    ['no options', 's', undefined, /schedules.set: expected an object with options/],
    ['a bad priority', 's', { every: '1m', priority: 11 }, /^schedules.set: s: priority: expected a whole number/],
  ])('refuses %s', async (_, name, options, message) => {
    const { schedules } = await opened();
    const set = schedules.set(name as string, 'job', {}, options as ScheduleOptions);
    await expect(set).rejects.toThrow(message);
    await expect(set).rejects.toBeInstanceOf(ConfigError);
    expect(await schedules.list()).toEqual([]);
  });

  it('refuses an input that the schema of the job refuses, and a job that is none', async () => {
    const { schedules } = await opened();
    const strict = defineJob({
      name: 'strict',
      input: { '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [{ message: 'no' }] }) } },
      run: () => {},
    });
    await expect(schedules.set('s', strict, {}, { every: '1m' })).rejects.toBeInstanceOf(InputError);
    const open = Mulligan.open('memory:', { schedules: [{ name: 'nightly', job: strict, every: '1m' }] });
    await expect(open).rejects.toThrow(
      'Mulligan.open: schedules: nightly: strict: expected an input its schema accepts',
    );
    await expect(schedules.set('s', 7 as never, {}, { every: '1m' })).rejects.toThrow(
      'schedules.set: expected a definition made by defineJob, or a job name, got 7.',
    );
  });
});

describe('schedules.show', () => {
  it('tells the next ticks and the last job', async () => {
    await using queue = await testQueue({ jobs: [report] });
    const { schedules } = queue.mulligan;
    await schedules.set('s', report, { kind: 'a' }, { every: '1h' });
    await queue.clock.advance(HOUR + MINUTE);
    const details = await schedules.show('s', { next: 3 });
    expect(details?.schedule).toMatchObject({ lastAt: START + HOUR, nextAt: START + 2 * HOUR });
    expect(details?.nextTimes).toEqual([2, 3, 4].map((hour) => START + hour * HOUR));
    expect(details?.lastJob).toMatchObject({ state: 'completed', dueAt: START + HOUR, payload: { kind: 'a' } });
    expect(details?.lastJob?.id).toBe(details?.schedule.lastJobId);
  });

  it('tells the ticks of a paused schedule as they would be, and null for an unknown name', async () => {
    const { schedules } = await opened();
    await schedules.set('s', 'job', {}, { every: '1h' });
    await schedules.pause('s');
    expect((await schedules.show('s', { next: 1 }))?.nextTimes).toEqual([START + HOUR]);
    expect((await schedules.show('s', { next: 0 }))?.nextTimes).toEqual([]);
    expect(await schedules.show('t')).toBeNull();
  });
});

describe('schedules', () => {
  it('are listed by name, in pages', async () => {
    const { schedules } = await opened();
    for (const name of ['b', 'c', 'a']) await schedules.set(name, 'job', {}, { every: '1h' });
    const first = await schedules.list({ limit: 2 });
    expect(first.map(({ name }) => name)).toEqual(['a', 'b']);
    expect((await schedules.list({ after: 'b' })).map(({ name }) => name)).toEqual(['c']);
  });

  it('that are paused fire nothing; what passed meanwhile is left out when they are resumed', async () => {
    await using queue = await testQueue({ jobs: [report] });
    const { schedules } = queue.mulligan;
    await schedules.set('s', report, { kind: 'a' }, { every: '1h', misfire: 'all' });
    await schedules.pause('s');
    await queue.clock.advance(5 * HOUR + MINUTE);
    expect(await queue.mulligan.jobs.list()).toEqual([]);
    expect(await schedules.resume('s')).toMatchObject({ nextAt: START + 6 * HOUR });
    await queue.clock.advance(HOUR);
    expect(await queue.mulligan.jobs.list()).toHaveLength(1);
  });

  it('that are triggered enqueue a job now, and their ticks stay as they are', async () => {
    const { schedules, mulligan } = await opened();
    await schedules.set('s', report, { kind: 'a' }, { every: '1h' });
    const { id, existed } = await schedules.trigger('s');
    expect(existed).toBe(false);
    expect(await mulligan.jobs.get(id)).toMatchObject({ name: 'report', state: 'ready', payload: { kind: 'a' } });
    expect((await schedules.show('s'))?.schedule).toMatchObject({ nextAt: START + HOUR, lastAt: null });
  });

  it('that must not overlap are not triggered while a job of theirs is live', async () => {
    const { schedules } = await opened();
    await schedules.set('s', report, { kind: 'a' }, { every: '1h', overlap: 'skip' });
    const first = await schedules.trigger('s');
    expect(await schedules.trigger('s')).toEqual({ id: first.id, existed: true });
  });

  it('that are removed are gone, and their jobs stay', async () => {
    const { schedules, mulligan } = await opened();
    await schedules.set('s', 'job', {}, { every: '1h' });
    await schedules.trigger('s');
    expect(await schedules.remove('s')).toBe(true);
    expect(await schedules.remove('s')).toBe(false);
    expect(await mulligan.jobs.list()).toHaveLength(1);
  });

  it('fire a one-off once, and it stays in the list as one without a next tick', async () => {
    await using queue = await testQueue({ jobs: [report] });
    await queue.mulligan.schedules.set('s', report, { kind: 'a' }, { at: new Date(START + HOUR) });
    await queue.clock.advance(3 * HOUR);
    expect(await queue.mulligan.jobs.list()).toHaveLength(1);
    expect(await queue.mulligan.schedules.list()).toMatchObject([{ nextAt: null, lastAt: START + HOUR }]);
  });

  it.each(['pause', 'resume', 'trigger'] as const)('refuse to %s one that does not exist', async (verb) => {
    const { schedules } = await opened();
    await schedules.set('nightly', 'job', {}, { every: '1h' });
    await expect(schedules[verb]('nightyl')).rejects.toThrow(
      `schedules.${verb}: expected the name of a schedule, got "nightyl". Did you mean nightly?`,
    );
  });

  it('that several change at once are changed by each, one after the other', async () => {
    const { schedules } = await opened();
    await schedules.set('s', 'job', {}, { every: '1h' });
    await Promise.all([schedules.pause('s'), schedules.set('s', 'job', 2, { every: '2h' }), schedules.pause('s')]);
    expect(await schedules.list()).toMatchObject([{ paused: true, input: 2, timing: { everyMs: 2 * HOUR } }]);
  });

  it('do not fire a tick again after the clock of the store was put back, not even when they are resumed', async () => {
    await using queue = await testQueue({ jobs: [report] });
    const { schedules } = queue.mulligan;
    await schedules.set('s', report, { kind: 'a' }, { every: '1h' });
    await queue.clock.advance(HOUR + MINUTE);
    queue.clock.step(-30 * MINUTE);
    await schedules.pause('s');
    expect(await schedules.resume('s')).toMatchObject({ lastAt: START + HOUR, nextAt: START + 2 * HOUR });
  });
});

describe('the schedules of an application', () => {
  const hourly: ScheduleDefinition = { name: 'hourly', job: report, input: { kind: 'a' }, every: '1h' };

  it('are stored when it opens, and stay as they are when it opens again', async () => {
    const { open, schedules, clock } = await opened();
    await open({ schedules: [hourly, { name: 'daily', job: 'other', cron: '0 0 * * *' }] });
    expect(await schedules.list()).toMatchObject([
      { name: 'daily', input: {}, source: 'code' },
      { name: 'hourly', input: { kind: 'a' }, source: 'code', updatedAt: START },
    ]);
    await clock.advance(MINUTE);
    await open({ schedules: [hourly] });
    expect((await schedules.show('hourly'))?.schedule.updatedAt).toBe(START);
  });

  it('are changed when the code is, the retry policy of the job included, and stay paused', async () => {
    const { open, schedules, stored } = await opened();
    await open({ schedules: [hourly] });
    await schedules.pause('hourly');
    await open({ schedules: [{ ...hourly, every: '2h' }] });
    expect(await schedules.list()).toMatchObject([{ timing: { everyMs: 2 * HOUR }, paused: true }]);
    const patient = defineJob<{ kind: string }>({ name: 'report', retry: { maxAttempts: 20 }, run: () => {} });
    await open({ schedules: [{ ...hourly, job: patient }] });
    expect((await stored('hourly')).job.policy.maxAttempts).toBe(20);
  });

  it('keep what was changed by hand until the code changes', async () => {
    const { open, schedules } = await opened();
    await open({ schedules: [hourly] });
    await schedules.set('hourly', report, { kind: 'by hand' }, { every: '3h' });
    await open({ schedules: [hourly] });
    expect(await schedules.list()).toMatchObject([{ input: { kind: 'by hand' }, source: 'code' }]);
    await open({ schedules: [{ ...hourly, every: '2h' }] });
    expect(await schedules.list()).toMatchObject([{ input: { kind: 'a' }, timing: { everyMs: 2 * HOUR } }]);
  });

  it('that are gone from the code stay, unless they are to be removed; stored ones always stay', async () => {
    const { open, schedules } = await opened();
    await schedules.set('by hand', 'job', {}, { every: '1h' });
    await open({ schedules: [hourly, { ...hourly, name: 'old' }] });
    await open({ schedules: [hourly] });
    expect((await schedules.list()).map(({ name }) => name)).toEqual(['by hand', 'hourly', 'old']);
    await open({ schedules: [hourly], removeMissingSchedules: true });
    expect((await schedules.list()).map(({ name }) => name)).toEqual(['by hand', 'hourly']);
  });

  it('may contain a one-off that has passed: it is not fired', async () => {
    const { open, schedules } = await opened();
    await open({ schedules: [{ name: 'once', job: 'job', at: new Date(START - 1) }] });
    expect(await schedules.list()).toMatchObject([{ name: 'once', nextAt: null }]);
  });

  it.each<[string, unknown, RegExp]>([
    ['no list', {}, /schedules: expected a list of schedules/],
    ['a name twice', [hourly, hourly], /schedules: expected each name once, got "hourly"/],
    ['a bad pattern', [{ ...hourly, every: undefined, cron: 'x' }], /schedules\[0\]: cron: expected/],
    ['no name', [{ job: 'job', every: '1h' }], /schedules\[0\]: name: expected a text/],
    ['a misspelt option', [{ ...hourly, jbo: 'x' }], /schedules\[0\]: there is no option "jbo"/],
  ])('are refused with %s, before the store is opened', async (_, schedules, message) => {
    const open = Mulligan.open('postgres://nowhere.invalid/none', { schedules: schedules as ScheduleDefinition[] });
    await expect(open).rejects.toThrow(message);
  });

  it('are refused with an input that the job refuses; the schedule is named', async () => {
    const { open } = await opened();
    const job = defineJob<number>({ name: 'job', run: () => {} });
    await expect(open({ schedules: [{ name: 's', job, input: 1n, every: '1h' }] })).rejects.toThrow(
      /^Mulligan.open: schedules: s.input: /,
    );
    await expect(open({ schedules: [{ name: 's', job: 7 as never, every: '1h' }] })).rejects.toThrow(
      'Mulligan.open: schedules: s: expected a definition made by defineJob, or a job name, got 7.',
    );
  });
});

describe('a worker of a queue with schedules', () => {
  it('emits what it enqueued, and logs what it missed', async () => {
    const log: LogEntry[] = [];
    const ids: string[] = [];
    await using queue = await testQueue({ jobs: [report], log: (entry) => log.push(entry), work: { poll: '1h' } });
    queue.mulligan.on('enqueued', ({ id }) => ids.push(id));
    await queue.mulligan.schedules.set('s', report, { kind: 'a' }, { every: '1h' });
    await queue.clock.advance(2 * HOUR + MINUTE);
    expect(ids).toHaveLength(2);
    queue.clock.step(5 * HOUR);
    await queue.clock.advance(2 * HOUR);
    expect(log).toMatchObject([{ level: 'warn', schedule: 's', misfire: 'once', fired: 1 }]);
  });
});
