import { describe, expect, it } from 'vitest';
import { defineJob } from '../definition.ts';
import { Mulligan } from '../mulligan.ts';
import { Unrecoverable } from '../retry/control-errors.ts';
import { MemoryStore } from '../store/memory/store.ts';
import type { ChangeAnswer, ChangeRequest, Operation } from '../store/store.ts';
import { testQueue } from '../testing/queue.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { BulkProgress } from './bulk.ts';

/** Fails until it is fixed. */
function breakable() {
  const state = { isBroken: true };
  const hook = defineJob<{ endpoint: number }>({
    name: 'hook',
    tags: ({ endpoint }) => [`endpoint:${endpoint}`],
    retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: '1h' }, jitter: 'none' },
    resource: false,
    run() {
      if (state.isBroken) throw new Unrecoverable('broken');
    },
  });
  return { hook, state };
}

async function open() {
  const { hook, state } = breakable();
  const queue = await testQueue({ jobs: [hook], work: { concurrency: 50 } });
  return Object.assign(queue, { hook, state });
}

const inputs = (count: number) => Array.from({ length: count }, (_, endpoint) => ({ endpoint }));

describe('tags', () => {
  it('come from the definition and from the enqueue, each once', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    const { id } = await mulligan.enqueue(hook, { endpoint: 42 }, { tags: ['eu', 'eu', 'endpoint:42'], delay: '1h' });
    expect(await mulligan.jobs.get(id)).toMatchObject({ tags: ['endpoint:42', 'eu'] });
    expect((await mulligan.jobs.list({ tag: 'endpoint:42' })).map((job) => job.id)).toEqual([id]);
  });

  it.each<[string, unknown, string]>([
    ['no list', 'eu', 'enqueue: tags: expected a list of texts'],
    ['a tag that is no text', [5], 'enqueue: tags[0]: expected a text'],
    ['a long tag', ['x'.repeat(101)], 'enqueue: tags[0]: expected a text of 1 to 100 characters'],
    ['too many', Array.from({ length: 17 }, (_, at) => `t${at}`), 'enqueue: tags: expected at most 16 tags, got 17.'],
  ])('are refused when there is %s', async (_, tags, message) => {
    await using queue = await open();
    const asked = queue.mulligan.enqueue(queue.hook, { endpoint: 1 }, { tags: tags as string[] });
    await expect(asked).rejects.toThrow(message);
  });

  it('of a function that throws are refused at enqueue', async () => {
    const bad = defineJob<{ endpoint: { id: number } | null }>({
      name: 'bad',
      tags: (input) => [`e:${input.endpoint?.id.toFixed() ?? (input as never as { x: { y: string } }).x.y}`],
      run() {},
    });
    await using queue = await testQueue({ jobs: [bad] });
    const asked = queue.mulligan.enqueue(bad, { endpoint: null });
    await expect(asked).rejects.toThrow('bad: tags: expected its function to return a list of texts, got an error');
  });
});

describe('a bulk action', () => {
  it('cancels what is selected, and leaves a record', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(3).map((input) => ({ input })),
      { delay: '1h' },
    );
    const result = await mulligan.jobs.cancel({ tag: 'endpoint:1', by: 'ann' });
    expect(result).toMatchObject({ count: 1, stopped: null, resumed: false });
    expect(await mulligan.jobs.count({ state: 'cancelled' })).toEqual({ count: 1, isExact: true });
    expect(await mulligan.audit.list()).toEqual([result.operation]);
    expect(result.operation).toMatchObject({
      action: 'cancel',
      by: 'ann',
      selection: { tag: 'endpoint:1' },
      changed: 1,
    });
  });

  it('shows in a dry run with a limit those that it would change, the longest dead', async () => {
    await using queue = await open();
    const { mulligan, hook, clock } = queue;
    const ids: string[] = [];
    for (const input of inputs(4)) {
      ids.push((await mulligan.enqueue(hook, input)).id);
      await clock.advance(60_000);
    }
    const dry = await mulligan.dead.discard({ name: 'hook', limit: 2, dryRun: true });
    expect([dry.count, dry.samples.map(({ id }) => id)]).toEqual([2, ids.slice(0, 2)]);
    const { ids: discarded } = await mulligan.dead.discard({ name: 'hook', limit: 2 });
    expect(discarded).toEqual(ids.slice(0, 2));
  });

  it('says in a dry run what it would continue, and refuses what the action itself would', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(700).map((input) => ({ input })),
    );
    await queue.clock.advance(60_000);
    const stop = new AbortController();
    const onProgress = (): void => stop.abort();
    await expect(mulligan.dead.redrive({ name: 'hook', canary: 5, signal: stop.signal, onProgress })).rejects.toThrow();
    const begun = (await mulligan.audit.list())[0] as Operation;
    const dry = await mulligan.dead.redrive({ name: 'hook', canary: 5, dryRun: true });
    expect(dry).toMatchObject({ dryRun: true, resumed: true, operation: { id: begun.id } });
    await expect(mulligan.dead.redrive({ name: 'hook', dryRun: true })).rejects.toThrow(
      /expected a canary of 5, as in the unfinished operation/,
    );
    expect(await mulligan.audit.stop(begun.id.slice(0, -3))).toMatchObject({ state: 'stopped' });
  });

  it('exports all that is dead, also when the caller brings back the jobs that it has read', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(1_700).map((input) => ({ input })),
    );
    await queue.clock.advance(60_000);
    await mulligan.queues.pause('default');
    const seen: string[] = [];
    for await (const { id } of mulligan.dead.export()) {
      seen.push(id);
      if (seen.length % 500 === 0) await mulligan.dead.redrive({ ids: seen.slice(-3) });
    }
    expect([seen.length, new Set(seen).size]).toEqual([1_700, 1_700]);
    const gone = async (): Promise<void> => {
      let count = 0;
      for await (const _ of mulligan.dead.export()) {
        if (++count === 500) await mulligan.dead.redrive({ name: 'hook' });
      }
    };
    await expect(gone()).rejects.toThrow(/all of them were brought back or deleted meanwhile/);
  });

  it('runs scheduled jobs now', async () => {
    await using queue = await open();
    const { mulligan, hook, state } = queue;
    state.isBroken = false;
    await mulligan.enqueueMany(
      hook,
      inputs(3).map((input) => ({ input })),
      { delay: '1d' },
    );
    expect(await mulligan.jobs.runNow({ name: 'hook' })).toMatchObject({ count: 3 });
    await queue.clock.advance(0);
    expect((await mulligan.stats()).states.completed).toBe(3);
  });

  it('reports progress, and the total', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(1_200).map((input) => ({ input })),
      { delay: '1h' },
    );
    const seen: BulkProgress[] = [];
    await mulligan.jobs.cancel({ name: 'hook', onProgress: (progress) => seen.push(progress) });
    expect(seen.map(({ changed }) => changed)).toEqual([0, 500, 1_000, 1_200]);
    expect(seen.map(({ total }) => total.count)).toEqual([1_200, 1_200, 1_200, 1_200]);
  });

  it('stops at a signal, and the same call continues', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(1_200).map((input) => ({ input })),
      { delay: '1h' },
    );
    const stop = new AbortController();
    const first = mulligan.jobs.cancel({
      name: 'hook',
      signal: stop.signal,
      onProgress: ({ changed }) => changed > 0 && stop.abort(),
    });
    await expect(first).rejects.toMatchObject({ name: 'AbortError' });
    expect(await mulligan.audit.list()).toMatchObject([{ state: 'running', changed: 500 }]);
    const rest = await mulligan.jobs.cancel({ name: 'hook' });
    expect(rest).toMatchObject({ resumed: true, count: 1_200 });
    expect(rest.ids).toHaveLength(700);
    expect(await mulligan.audit.list()).toMatchObject([{ state: 'done', changed: 1_200 }]);
  });

  it('is the same order when a duration is given again later', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(700).map((input) => ({ input })),
      { delay: '1d' },
    );
    const stop = new AbortController();
    const options = { name: 'hook', since: '1h' } as const;
    const first = mulligan.jobs.cancel({
      ...options,
      signal: stop.signal,
      onProgress: ({ changed }) => changed > 0 && stop.abort(),
    });
    await expect(first).rejects.toThrow();
    await queue.clock.advance(60_000);
    const again = { ...options, since: '1h ago' } as const;
    expect(await mulligan.jobs.cancel(again)).toMatchObject({ resumed: true, count: 700 });
  });

  it('refuses to continue with another canary, and a stopped one is not continued', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(700).map((input) => ({ input })),
    );
    await queue.drain();
    await mulligan.queues.pause('default');
    const stop = new AbortController();
    const first = mulligan.dead.redrive({
      name: 'hook',
      by: 'ann',
      signal: stop.signal,
      onProgress: ({ changed }) => changed > 0 && stop.abort(),
    });
    await expect(first).rejects.toMatchObject({ name: 'AbortError' });
    const id = (await mulligan.audit.list())[0]?.id as string;
    await expect(mulligan.dead.redrive({ name: 'hook', canary: 5 })).rejects.toThrow(
      new RegExp(
        `^dead\\.redrive: expected no canary, as in the unfinished operation ${id} of the same jobs \\(by ann, began \\S+Z, 500 changed so far\\), got a canary of 5\\. Nothing was changed\\. Give the same options to continue it, or end it with audit\\.stop\\('${id}'\\)\\.$`,
      ),
    );
    await expect(mulligan.dead.redrive({ name: 'hook', canary: 5 })).rejects.toMatchObject({
      name: 'ConflictError',
      code: 'CONFLICT',
      operationId: id,
    });
    await expect(mulligan.dead.redrive({ name: 'hook', keepAttempts: true })).rejects.toThrow(
      'got no canary, attempts',
    );
    expect((await mulligan.stats()).states.dead).toBe(200);
    expect(await mulligan.audit.stop(id, { by: 'bob' })).toMatchObject({
      state: 'stopped',
      note: 'stopped by bob',
    });
    expect(await mulligan.audit.stop(id)).toMatchObject({ note: 'stopped by bob' });
    await expect(mulligan.audit.stop('nothing')).rejects.toThrow('expected the id of an operation, got "nothing"');
    const asked = mulligan.dead.redrive({ name: 'hook', canary: 5, canaryTimeout: '1s' });
    await queue.clock.advance(2_000);
    expect(await asked).toMatchObject({ count: 5, resumed: false });
  });

  it('keeps on record how it was ordered and by whom it was continued, with another rate', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(700).map((input) => ({ input })),
      { delay: '1d' },
    );
    const stop = new AbortController();
    const options = { name: 'hook', rate: '50/s' } as const;
    const first = mulligan.jobs.runNow({
      ...options,
      by: 'ann',
      signal: stop.signal,
      onProgress: ({ changed }) => changed > 0 && stop.abort(),
    });
    await expect(first).rejects.toThrow();
    const ordered = { canary: 0, keepAttempts: false, rate: '50/s', continuedBy: null };
    expect(await mulligan.audit.list()).toMatchObject([{ by: 'ann', options: ordered }]);
    const began = queue.clock.now();
    const rest = await mulligan.jobs.runNow({ ...options, rate: '10/s', by: 'bob' });
    expect(rest).toMatchObject({ resumed: true, dueUntil: began + 500 * 20 + 199 * 100 });
    const continued = { ...ordered, rate: '10/s', continuedBy: 'bob' };
    expect(await mulligan.audit.list()).toMatchObject([{ by: 'ann', options: continued }]);
  });

  it('takes the start of a fingerprint, and refuses one that no job has', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(3).map((input) => ({ input })),
    );
    await queue.drain();
    const [group] = await mulligan.errors.list();
    const error = group?.fingerprint.slice(0, 6) as string;
    expect(await mulligan.jobs.count({ error })).toMatchObject({ count: 3 });
    expect(await mulligan.jobs.list({ error })).toHaveLength(3);
    expect(await mulligan.dead.count({ error })).toMatchObject({ count: 3 });
    expect(await mulligan.dead.list({ error })).toHaveLength(3);
    let exported = 0;
    for await (const _ of mulligan.dead.export({ error })) exported++;
    expect(exported).toBe(3);
    const unknown = /^dead\.redrive: error: expected the fingerprint of an error, or the start of one, got "e1ffff0"\./;
    await expect(mulligan.dead.redrive({ error: 'e1ffff0' })).rejects.toThrow(unknown);
    await expect(mulligan.dead.redrive({ error: 'e1ffff0', dryRun: true })).rejects.toThrow(unknown);
    expect(await mulligan.jobs.count({ error: 'e1ffff0' })).toMatchObject({ count: 0 });
    expect(await mulligan.audit.list()).toEqual([]);
    expect(await mulligan.dead.redrive({ error })).toMatchObject({ count: 3 });
    expect(await mulligan.audit.list()).toMatchObject([{ selection: { error: group?.fingerprint } }]);
  });

  it('says of ids that it does not apply to what they are, and what to use', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    const dead = (await mulligan.enqueue(hook, { endpoint: 1 })).id;
    await queue.drain();
    const waiting = (await mulligan.enqueue(hook, { endpoint: 2 }, { delay: '1h' })).id;
    expect((await mulligan.dead.redrive({ ids: [waiting, 'unheard of'] })).others).toEqual([
      { id: waiting, state: 'scheduled', use: 'jobs.runNow' },
      { id: 'unheard of', state: 'not-found', use: null },
    ]);
    expect((await mulligan.jobs.runNow({ ids: [dead] })).others).toEqual([
      { id: dead, state: 'dead', use: 'dead.redrive' },
    ]);
    await expect(mulligan.jobs.runNow({ state: 'dead' })).rejects.toThrow('Use dead.redrive for dead jobs.');
  });

  it('exports all that is selected, page by page', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(1_100).map((input) => ({ input })),
      { delay: '1h' },
    );
    const seen = new Set<string>();
    for await (const job of mulligan.jobs.export({ name: 'hook' })) seen.add(job.id);
    expect(seen.size).toBe(1_100);
    let limited = 0;
    for await (const _ of mulligan.jobs.export({ name: 'hook', limit: 700 })) limited++;
    expect(limited).toBe(700);
  });
});

describe('a canary', () => {
  it('that fails again leaves the rest dead, and says why', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(20).map((input) => ({ input })),
    );
    await queue.drain();
    const asked = mulligan.dead.redrive({ name: 'hook', canary: 3 });
    await queue.clock.advance(1_000);
    const result = await asked;
    expect(result.stopped).toMatch(
      /^3 of 3 canaries did not complete\. [0-9a-f-]{36} \(hook\): Unrecoverable: broken$/,
    );
    expect(result).toMatchObject({ count: 3, operation: { state: 'stopped', changed: 3 } });
    expect((await mulligan.stats()).states.dead).toBe(20);
    expect(await mulligan.jobs.count({ attempts: 1 })).toEqual({ count: 20, isExact: true });
  });

  it('that ends well lets the rest follow at the rate', async () => {
    await using queue = await open();
    const { mulligan, hook, state } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(20).map((input) => ({ input })),
    );
    await queue.drain();
    state.isBroken = false;
    const asked = mulligan.dead.redrive({ name: 'hook', canary: 3, rate: '1/s' });
    await queue.clock.advance(600);
    expect(await asked).toMatchObject({ count: 20, stopped: null });
    // The first of the rest is due at once, the others a second apart.
    expect((await mulligan.stats()).states.completed).toBe(4);
    await queue.clock.advance(10_000);
    expect((await mulligan.stats()).states.completed).toBe(14);
  });

  it('that is cancelled leaves the rest dead', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(5).map((input) => ({ input })),
    );
    await queue.drain();
    await mulligan.queues.pause('default');
    const asked = mulligan.dead.redrive({ name: 'hook', canary: 1 });
    await queue.clock.advance(500);
    expect(await mulligan.jobs.cancel({ name: 'hook' })).toMatchObject({ count: 1 });
    await queue.clock.advance(500);
    expect((await asked).stopped).toMatch(/^1 of 1 canaries did not complete\. \S+ \(hook\) was cancelled$/);
    expect((await mulligan.stats()).states.dead).toBe(4);
  });

  it('that fails is on record as stopped, also when no job was left after it', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(5).map((input) => ({ input })),
    );
    await queue.drain();
    const asked = mulligan.dead.redrive({ name: 'hook', canary: 2, limit: 2 });
    await queue.clock.advance(1_000);
    expect(await asked).toMatchObject({ count: 2, stopped: expect.stringContaining('2 of 2 canaries') });
    const note = expect.stringContaining('2 of 2 canaries');
    expect(await mulligan.audit.list()).toMatchObject([{ state: 'stopped', note }]);
  });

  it('that does not end in time leaves the rest dead', async () => {
    await using queue = await open();
    const { mulligan, hook } = queue;
    await mulligan.enqueueMany(
      hook,
      inputs(5).map((input) => ({ input })),
    );
    await queue.drain();
    await mulligan.queues.pause('default');
    const asked = mulligan.dead.redrive({ name: 'hook', canary: 2, canaryTimeout: '5s' });
    await queue.clock.advance(6_000);
    expect((await asked).stopped).toContain('2 of 2 canaries have not ended in 5s.');
    expect((await mulligan.stats()).states.dead).toBe(3);
  });

  it('is watched again when the process ended meanwhile, and no further one is taken', async () => {
    const { hook, state } = breakable();
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    const first = await Mulligan.open(store, { jobs: [hook], clock, log: () => {} });
    const worker = first.work({ concurrency: 20 });
    await first.enqueueMany(
      hook,
      inputs(10).map((input) => ({ input })),
    );
    await clock.advance(1_000);
    await first.queues.pause('default');
    state.isBroken = false;
    const stop = new AbortController();
    const killed = first.dead.redrive({ name: 'hook', canary: 2, signal: stop.signal }).catch(() => 'killed');
    await clock.advance(1_000);
    stop.abort();
    await clock.advance(1_000);
    expect(await killed).toBe('killed');
    expect((await first.stats()).states.ready).toBe(2);
    const again = first.dead.redrive({ name: 'hook', canary: 2 });
    await clock.advance(1_000);
    expect((await first.stats()).states.ready).toBe(2);
    await first.queues.resume('default');
    await clock.advance(1_000);
    expect(await again).toMatchObject({ count: 10, resumed: true });
    await clock.advance(1_000);
    expect((await first.stats()).states.completed).toBe(10);
    for (const job of await first.jobs.list()) expect(job.runs).toBe(2);
    await worker.stop();
  });
});

describe('a single dead job', () => {
  it('may be redriven with another payload, which is checked like any other', async () => {
    await using queue = await open();
    const { mulligan, hook, state } = queue;
    const { id } = await mulligan.enqueue(hook, { endpoint: 1 });
    await queue.drain();
    state.isBroken = false;
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    await expect(mulligan.dead.redrive({ ids: [id], edit: loop })).rejects.toMatchObject({ code: 'PAYLOAD' });
    await mulligan.dead.redrive({ ids: [id], edit: { endpoint: 2 } });
    await queue.drain();
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'completed', payload: { endpoint: 2 } });
  });
});

describe('an operation whose answer was lost', () => {
  it('is continued by the same call, and changes each job once', async () => {
    const clock = new VirtualClock();
    let fails = true;
    class Lossy extends MemoryStore {
      override async change(request: ChangeRequest): Promise<ChangeAnswer> {
        const answer = await super.change(request);
        if (fails && answer.ids.length > 0) {
          fails = false;
          throw new Error('the answer was lost');
        }
        return answer;
      }
    }
    const { hook } = breakable();
    const mulligan = await Mulligan.open(new Lossy({ clock }), { clock, log: () => {} });
    await mulligan.enqueueMany(
      hook,
      inputs(700).map((input) => ({ input })),
      { delay: '1h' },
    );
    await expect(mulligan.jobs.runNow({ name: 'hook' })).rejects.toThrow('lost');
    expect(await mulligan.jobs.runNow({ name: 'hook' })).toMatchObject({ count: 700, resumed: true });
    expect(await mulligan.audit.list()).toHaveLength(1);
  });
});
