import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type AnyJobDefinition, defineJob } from '../definition.ts';
import { Mulligan } from '../mulligan.ts';
import { Unrecoverable } from '../retry/control-errors.ts';
import { MemoryStore } from '../store/memory/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { WorkOptions } from './options.ts';

const MINUTE = 60_000;

/** Deploys of one program on one store; each gets a worker, unless it only produces. */
class Fleet {
  readonly clock = new VirtualClock();
  readonly store = new MemoryStore({ clock: this.clock });

  async deploy(jobs: AnyJobDefinition[], work: WorkOptions | null = {}): Promise<Mulligan> {
    const mulligan = await Mulligan.open(this.store, { jobs, clock: this.clock, log: () => {} });
    if (work !== null) mulligan.work({ name: 'worker', ...work });
    return mulligan;
  }
}

interface Mail {
  readonly to: string[];
}

/** Version 1 had one address, version 2 has a list. */
function mail(seen: unknown[], changes: object = {}): AnyJobDefinition {
  return defineJob<Mail>({
    name: 'mail',
    version: 2,
    input: z.object({ to: z.array(z.string()) }),
    run: (input, { job }) => void seen.push([input, job.version]),
    ...changes,
  });
}

const first = defineJob<{ to: string }>({ name: 'mail', run: () => {} });

describe('a job of an earlier version', () => {
  it('is migrated before its schema sees it; its payload stays as it was enqueued', async () => {
    const fleet = new Fleet();
    const seen: unknown[] = [];
    const migrated: unknown[] = [];
    const migrate = (payload: { to: string }, fromVersion: number): Mail => {
      migrated.push([payload, fromVersion]);
      return { to: [payload.to] };
    };
    const mulligan = await fleet.deploy([mail(seen, { migrate })]);
    const { id } = await mulligan.enqueue(first, { to: 'a' });
    await fleet.clock.advance(10);
    expect(migrated).toEqual([[{ to: 'a' }, 1]]);
    expect(seen).toEqual([[{ to: ['a'] }, null]]);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'completed', payload: { to: 'a' }, version: null });
  });

  it('is migrated by a function that returns a promise, and one of the same version is not migrated', async () => {
    const fleet = new Fleet();
    const seen: unknown[] = [];
    const migrate = async (payload: { to: string }): Promise<Mail> => ({ to: [payload.to] });
    const job = mail(seen, { migrate });
    const mulligan = await fleet.deploy([job]);
    await mulligan.enqueue(defineJob<{ to: string }>({ name: 'mail', version: 1, run: () => {} }), { to: 'a' });
    await mulligan.enqueue(job, { to: ['b'] });
    await fleet.clock.advance(10);
    expect(seen).toEqual([
      [{ to: ['a'] }, 1],
      [{ to: ['b'] }, 2],
    ]);
  });

  it('is handed back when its migration throws, and ends at once when that says so', async () => {
    const fleet = new Fleet();
    const migrate = (payload: { to: string }): Mail => {
      throw payload.to === 'a' ? new RangeError('no such address') : new Unrecoverable('gone');
    };
    const mulligan = await fleet.deploy([mail([], { migrate })]);
    const [broken, gone] = await mulligan.enqueueMany(first, [{ input: { to: 'a' } }, { input: { to: 'b' } }]);
    await fleet.clock.advance(10);
    expect(await mulligan.jobs.get(broken?.id as string)).toMatchObject({
      state: 'ready',
      attempts: 0,
      lastError: {
        name: 'InputError',
        message:
          'mail: expected migrate to bring a payload from version 1 to 2, but it threw RangeError: no such address',
        issues: [{ message: 'migrate threw RangeError: no such address', path: '' }],
      },
    });
    expect(await mulligan.jobs.get(gone?.id as string)).toMatchObject({ state: 'dead', deadReason: 'unrecoverable' });
  });
});

describe('a migration that returns nothing', () => {
  it('rejects the payload, also without a schema', async () => {
    const fleet = new Fleet();
    const seen: unknown[] = [];
    const mulligan = await fleet.deploy([mail(seen, { input: undefined, migrate: () => {} })]);
    const { id } = await mulligan.enqueue(first, { to: 'a' });
    await fleet.clock.advance(10);
    expect(seen).toEqual([]);
    expect(await mulligan.jobs.get(id)).toMatchObject({
      state: 'ready',
      attempts: 0,
      lastError: {
        name: 'InputError',
        message: 'mail: expected migrate to bring a payload from version 1 to 2, but it returned undefined',
      },
    });
  });
});

describe('a job of a later version', () => {
  it('is not run by a worker of an earlier one, and is taken at once by one that has it', async () => {
    const fleet = new Fleet();
    const seen: unknown[] = [];
    const producer = await fleet.deploy([], null);
    const old = await fleet.deploy([mail(['not run'])]);
    const { id } = await producer.enqueue(mail([], { version: 3 }) as never, { to: ['a'] } as never);
    await fleet.clock.advance(10 * MINUTE);
    const [run, ...more] = await old.jobs.runs(id);
    expect(run).toMatchObject({
      outcome: 'released',
      counted: false,
      decision: { rule: 'no-handler: version 3, known 2', aside: { version: 3, isRejected: false } },
    });
    expect(more).toEqual([]);
    await fleet.deploy([mail(seen, { version: 4 })]);
    await fleet.clock.advance(10);
    expect(seen).toEqual([[{ to: ['a'] }, 3]]);
  });
});

describe('a payload that a schema rejects', () => {
  const rejecting = mail([], { input: z.never() });

  it('goes to a worker of another deploy at once, also without versions, and costs no attempt', async () => {
    const fleet = new Fleet();
    await fleet.deploy([rejecting]);
    const producer = await fleet.deploy([], null);
    const ids = (await producer.enqueueMany('mail', Array(20).fill({ input: { to: ['a'] } }))).map(({ id }) => id);
    await fleet.clock.advance(10);
    const seen: unknown[] = [];
    const deployed = await fleet.deploy([mail(seen)]);
    await fleet.clock.advance(100);
    expect(seen).toHaveLength(20);
    const jobs = await Promise.all(ids.map((id) => deployed.jobs.get(id)));
    expect(new Set(jobs.map((job) => job?.attempts))).toEqual(new Set([1]));
  });

  it('is left alone by the worker that rejected it for longer and longer, while that takes other jobs of the name', async () => {
    const fleet = new Fleet();
    const seen: unknown[] = [];
    const mulligan = await fleet.deploy([mail(seen)]);
    const { id } = await mulligan.enqueue(first, { to: 'a' });
    await fleet.clock.advance(10);
    await mulligan.enqueue('mail', { to: ['b'] } as never);
    await fleet.clock.advance(10);
    expect(seen).toEqual([[{ to: ['b'] }, 2]]);
    await fleet.clock.advance(55 * MINUTE);
    const runs = await mulligan.jobs.runs(id);
    const pauses = runs.slice(1).map(({ startedAt }, index) => startedAt - (runs[index]?.startedAt as number));
    expect(pauses[0]).toBeGreaterThanOrEqual(1_000);
    expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(5 * MINUTE);
    expect(runs.every(({ counted, error }) => !counted && error?.name === 'InputError')).toBe(true);
    await fleet.clock.advance(15 * MINUTE);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'dead', deadReason: 'unrecoverable', attempts: 0 });
    expect((await mulligan.jobs.runs(id)).at(-1)?.decision).toMatchObject({ rule: 'payload rejected for 1h' });
  });

  it('does not wait where two deploys run side by side, each of which rejects what the other reads', async () => {
    const fleet = new Fleet();
    const late: number[] = [];
    const define = (input: z.ZodType<{ a: number }, { a: number }>): AnyJobDefinition =>
      defineJob<{ a: number }>({
        name: 'mail',
        input,
        async run({ a }) {
          late.push(fleet.clock.now() - a);
          await new Promise<void>((resolve) => fleet.clock.after(150, resolve));
        },
      });
    await fleet.deploy([define(z.strictObject({ a: z.number() }))], { concurrency: 1 });
    await fleet.deploy([define(z.strictObject({ a: z.number(), b: z.string() }))], { concurrency: 1 });
    const producer = await fleet.deploy([], null);
    for (let n = 0; n < 300; n++) {
      const a = fleet.clock.now();
      const payloads = [{ a }, { a, b: 'b' }];
      await producer.enqueueMany(
        'mail',
        (n % 4 < 2 ? payloads : payloads.toReversed()).map((input) => ({ input })),
      );
      await fleet.clock.advance(200);
    }
    expect(late).toHaveLength(600);
    expect(Math.max(...late)).toBeLessThan(200);
  });

  it('is not handed from one worker to the other where both reject it, for different reasons', async () => {
    const fleet = new Fleet();
    const rejects = (message: string): AnyJobDefinition =>
      mail([], { input: z.unknown().refine(() => false, message) });
    const one = await fleet.deploy([rejects('too old')]);
    await fleet.deploy([rejects('not signed')]);
    const { id } = await (await fleet.deploy([], null)).enqueue('mail', { to: ['a'] });
    await fleet.clock.advance(900);
    // The first one looks once more, because it has not seen what the second one has against it.
    expect(await one.jobs.runs(id)).toHaveLength(3);
  });

  it('is not claimed again by the worker that has just rejected it, although it claims before it hears that this is recorded', async () => {
    const fleet = new Fleet();
    const settle = fleet.store.settle.bind(fleet.store);
    // The store has recorded it, but its answer takes a while.
    fleet.store.settle = async (settlements) => {
      const answers = await settle(settlements);
      await new Promise<void>((resolve) => fleet.clock.after(50, resolve));
      return answers;
    };
    const mulligan = await fleet.deploy([rejecting], { concurrency: 2 });
    const producer = await fleet.deploy([], null);
    const { id } = await producer.enqueue('mail', { to: ['a'] });
    await fleet.clock.advance(500);
    expect(await mulligan.jobs.runs(id)).toHaveLength(1);
  });

  it('is dead after rejectedPayloadTimeout, and many of them end one right after the other', async () => {
    const fleet = new Fleet();
    const mulligan = await fleet.deploy([rejecting], { rejectedPayloadTimeout: '1m' });
    const producer = await fleet.deploy([], null);
    await producer.enqueueMany('mail', Array(200).fill({ input: { to: ['a'] } }));
    await fleet.clock.advance(50_000);
    expect((await mulligan.stats()).states.ready).toBe(200);
    await fleet.clock.advance(20_000);
    expect((await mulligan.stats()).states.dead).toBe(200);
  });

  it('that was rejected before it was redriven has all the time again', async () => {
    const fleet = new Fleet();
    const mulligan = await fleet.deploy([rejecting], { rejectedPayloadTimeout: '1m' });
    const { id } = await (await fleet.deploy([], null)).enqueue('mail', { to: ['a'] });
    await fleet.clock.advance(2 * MINUTE);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'dead' });
    await mulligan.dead.redrive({ ids: [id] });
    await fleet.clock.advance(MINUTE / 2);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'ready' });
  });
});

describe('a payload that no worker can read', () => {
  it.each([
    ['{', 'expected a payload in JSON'],
    [`${'['.repeat(501)}${']'.repeat(501)}`, 'expected a payload of at most 500 levels'],
  ])('%.20s ends its job at once', async (payload, message) => {
    const fleet = new Fleet();
    const mulligan = await fleet.deploy([first], null);
    const { id } = await mulligan.enqueue(first, { to: 'a' });
    const claim = fleet.store.claim.bind(fleet.store);
    fleet.store.claim = async (request) => {
      const answer = await claim(request);
      return { ...answer, jobs: answer.jobs.map((job) => ({ ...job, payload })) };
    };
    mulligan.work();
    await fleet.clock.advance(10);
    const [run] = await mulligan.jobs.runs(id);
    expect(run).toMatchObject({ decision: { kind: 'dead', reason: 'unrecoverable', rule: 'thrown:Unrecoverable' } });
    expect(run?.error?.message).toContain(message);
  });
});

describe('an answer that is not JSON', () => {
  it('is an error of the job, which is retried', async () => {
    const fleet = new Fleet();
    const job = defineJob({ name: 'fetch', run: () => JSON.parse('<html>') });
    const mulligan = await fleet.deploy([job]);
    const { id } = await mulligan.enqueue(job, null);
    await fleet.clock.advance(MINUTE);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'dead', deadReason: 'exhausted', attempts: 4 });
  });
});
