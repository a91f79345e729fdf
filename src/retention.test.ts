import { describe, expect, it } from 'vitest';
import { defineJob } from './definition.ts';
import { Mulligan, type MulliganOptions } from './mulligan.ts';
import type { LogEntry } from './observe/log.ts';
import type { Retention } from './retention.ts';
import { createServer, createToken } from './server/index.ts';
import { MemoryStore } from './store/memory/store.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

const DAY_MS = 24 * 60 * 60_000;
const kept = defineJob<null>({ name: 'kept', run: () => {} });
const ordinary = defineJob<null>({ name: 'ordinary', run: () => {} });

/** Two processes on one store; the second one knows nothing of the first one's settings. */
async function twoProcesses() {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const options = { clock, log: () => {} };
  const application = await Mulligan.open(store, { ...options, jobs: [kept], retention: { completed: '30d' } });
  const other = await Mulligan.open(store, { ...options, jobs: [ordinary] });
  /** Time for a worker or a server to look. */
  const passDays = async (days: number): Promise<void> => {
    clock.set(clock.now() + days * DAY_MS);
    await clock.advance(60_000);
  };
  return { clock, application, other, passDays, [Symbol.asyncDispose]: () => application.close() };
}

describe('what an application keeps for 30 days', () => {
  it.each(['serve', 'work'])(
    'is not deleted by a process with defaults that does what `mulligan %s` does',
    async (does) => {
      await using two = await twoProcesses();
      const { clock, application, other, passDays } = two;
      const mine = await application.enqueue(kept, null);
      const others = await other.enqueue(ordinary, null);
      const workers = [application.work(), other.work()];
      await clock.advance(1_000);
      await Promise.all(workers.map((worker) => worker.stop()));
      const server = does === 'serve' ? await createServer(other, { chores: true }) : null;
      const worker = does === 'work' ? other.work() : null;
      await passDays(2);
      expect(await other.jobs.get(others.id)).toBeNull();
      expect(await application.jobs.get(mine.id)).toMatchObject({ state: 'completed' });
      await passDays(28);
      expect(await application.jobs.get(mine.id)).toBeNull();
      await Promise.all([server?.close(), worker?.stop()]);
    },
  );
});

describe('the retention of a definition', () => {
  const hour = '1h' as const;
  const brief = defineJob<null>({ name: 'brief', retention: { completed: hour, dead: null }, run: () => {} });

  async function open(store: MemoryStore, clock: VirtualClock, options: MulliganOptions) {
    const logged: LogEntry[] = [];
    const mulligan = await Mulligan.open(store, { clock, log: (entry) => void logged.push(entry), ...options });
    return { mulligan, logged };
  }

  it('goes before that of the process, and what neither says is the default', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    const { mulligan, logged } = await open(store, clock, {
      jobs: [brief, ordinary],
      retention: { completed: '6h', cancelled: '2d' },
    });
    const days = (count: number): number => count * DAY_MS;
    expect(await mulligan.retention.list()).toEqual([
      { name: null, kept: { completed: days(1), dead: days(90), cancelled: days(7) }, code: {}, set: {} },
      {
        name: 'brief',
        kept: { completed: days(1 / 24), dead: null, cancelled: days(2) },
        code: { completed: days(1 / 24), dead: null, cancelled: days(2) },
        set: {},
      },
      {
        name: 'ordinary',
        kept: { completed: days(1 / 4), dead: days(90), cancelled: days(2) },
        code: { completed: days(1 / 4), cancelled: days(2) },
        set: {},
      },
    ]);
    expect(logged).toEqual([]);
  });

  it('is the longer one of two deploys, in either order, and the other is told what to do', async () => {
    for (const order of [
      ['30d', '7d'],
      ['7d', '30d'],
    ] as const) {
      const clock = new VirtualClock();
      const store = new MemoryStore({ clock });
      const opened = [];
      for (const completed of order) {
        const job = defineJob<null>({ name: 'kept', retention: { completed }, run: () => {} });
        opened.push(await open(store, clock, { jobs: [job] }));
      }
      const info = await opened[0]?.mulligan.retention.show('kept');
      expect(info?.kept.completed).toBe(30 * DAY_MS);
      const warnings = opened.flatMap(({ logged }) => logged);
      expect(warnings.map(({ level, message: _, ...fields }) => [level, fields])).toEqual(
        order[1] === '30d'
          ? []
          : [
              [
                'warn',
                {
                  name: 'kept',
                  state: 'completed',
                  code: '7d',
                  holds: '30d',
                  change: 'mulligan retention set completed=7d --name kept',
                },
              ],
            ],
      );
    }
  });

  it('is shortened by an order, which a restart leaves alone, and which is on record', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    const { mulligan } = await open(store, clock, { jobs: [kept], retention: { completed: '30d' } });
    await mulligan.retention.set({ completed: '7d' }, { name: 'kept', by: 'ann' });
    await open(store, clock, { jobs: [kept], retention: { completed: '30d' } });
    expect(await mulligan.retention.show('kept')).toMatchObject({
      kept: { completed: 7 * DAY_MS },
      code: { completed: 30 * DAY_MS },
      set: { completed: 7 * DAY_MS },
    });
    await mulligan.retention.reset({ name: 'kept', by: 'ann' });
    expect((await mulligan.retention.show('kept')).kept.completed).toBe(30 * DAY_MS);
    expect(await mulligan.audit.list()).toMatchObject([
      { action: 'retention', by: 'ann', note: 'retention of kept was reset' },
      { action: 'retention', by: 'ann', note: 'retention of kept was set: completed=7d' },
    ]);
  });

  it('of all other names is changed by an order alone', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    const { mulligan } = await open(store, clock, { jobs: [kept], retention: { completed: '30d' } });
    await mulligan.retention.set({ completed: 0, dead: null });
    expect((await mulligan.retention.show('ordinary')).kept).toEqual({
      completed: 5 * 60_000,
      dead: null,
      cancelled: 7 * DAY_MS,
    });
    expect((await mulligan.retention.show('kept')).kept.completed).toBe(30 * DAY_MS);
  });

  it.each<[string, (retention: Retention) => Promise<unknown>, RegExp]>([
    ['nothing', (it) => it.set({}), /^retention\.set: expected one of completed, dead, cancelled, got an empty object/],
    ['an unknown state', (it) => it.set({ done: 1 } as never), /^retention\.set: there is no option "done"/],
    ['no duration', (it) => it.set({ dead: 'long' as never }), /^retention\.set\.dead: expected a duration/],
    ['a blank name', (it) => it.set({ dead: null }, { name: ' ' }), /^retention\.set: name: expected a text/],
  ])('refuses an order of %s', async (_, order, complaint) => {
    await using mulligan = await Mulligan.open('memory:', { log: () => {} });
    await expect(order(mulligan.retention)).rejects.toThrow(complaint);
  });
});

describe('a token of the scope work', () => {
  it('keeps jobs for longer, and never shorter, by the raw verb', async () => {
    await using mulligan = await Mulligan.open('memory:', { log: () => {} });
    await mulligan.retention.set({ completed: '2d' }, { name: 'kept' });
    const { token, stored } = createToken('worker', ['work']);
    const server = await createServer(mulligan, { tokens: [stored] });
    const write = async (...rules: object[]): Promise<number> => {
      const request = new Request('http://localhost/api/v1/store/writeRetention', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify([rules]),
      });
      return (await server.fetch(request)).status;
    };
    const rule = { name: 'other', state: 'completed', source: 'code' };
    expect(await write({ ...rule, keptMs: 1 }, { ...rule, name: 'kept', keptMs: 1 })).toBe(200);
    expect((await mulligan.retention.show('other')).kept.completed).toBe(DAY_MS);
    expect((await mulligan.retention.show('kept')).kept.completed).toBe(2 * DAY_MS);
    expect(await write({ ...rule, keptMs: 3 * DAY_MS })).toBe(200);
    expect((await mulligan.retention.show('other')).kept.completed).toBe(3 * DAY_MS);
    expect(await write({ ...rule, source: 'set', keptMs: null })).toBe(403);
    expect(await write({ ...rule, name: null, keptMs: null })).toBe(403);
    expect(await write(rule)).toBe(403);
    await server.close();
  });
});
