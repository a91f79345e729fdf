import { describe, expect, it } from 'vitest';
import type { Claim, ClaimedJob, ClaimRequest } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { type Capacity, Fetcher } from './fetch.ts';
import { planWork, type WorkOptions } from './options.ts';

const idle: Capacity = { running: 0, buffered: 0, settling: 0, meanRunMs: null, inVain: false };
const someJob = { queue: 'default', lane: 'fresh' } as ClaimedJob;
const jobs = (count: number): ClaimedJob[] => new Array(count).fill(someJob);

/** A fetcher whose worker and store are what the test says. Claims that the test does not answer find nothing. */
function makeFetcher(options: WorkOptions = {}) {
  const clock = new VirtualClock();
  const claims: { request: ClaimRequest; at: number }[] = [];
  const told: string[] = [];
  const accepted: Claim[] = [];
  const world = {
    capacity: idle,
    answer: async (_: ClaimRequest): Promise<Partial<Claim>> => ({}),
  };
  const fetcher = new Fetcher({
    clock,
    plan: planWork({ poll: '1s', lease: '30s', concurrency: 10, ...options }),
    worker: 'w',
    callTimeoutMs: 5_000,
    store: {
      async claim(request) {
        claims.push({ request, at: clock.monotonic() });
        return { jobs: [], now: clock.now(), nextDueAt: null, suspectsWait: false, ...(await world.answer(request)) };
      },
    },
    capacity: () => world.capacity,
    accept: (claim) => accepted.push(claim),
    onDrained: () => told.push('drained'),
    onTrouble: (error) => told.push((error as Error).message),
    onAnswer: () => told.push('answered'),
  });
  return { clock, claims, told, accepted, world, fetcher, at: () => claims.map(({ at }) => at) };
}

describe('a fetcher', () => {
  it('that found less than it asked for is drained, and looks again after the poll', async () => {
    const { clock, fetcher, told, at } = makeFetcher();
    fetcher.start();
    expect(fetcher.drained).toBe(false);
    await clock.advance(2_500);
    expect(at()).toEqual([0, 1_000, 2_000]);
    expect(fetcher.drained).toBe(true);
    expect(told.slice(0, 2)).toEqual(['answered', 'drained']);
    await stopSoon(clock, fetcher);
  });

  it('that found all it asked for looks again at once', async () => {
    const { clock, fetcher, world, told, at } = makeFetcher();
    world.answer = async ({ limit }) => {
      world.answer = async () => ({});
      return { jobs: jobs(limit) };
    };
    fetcher.start();
    await clock.advance(0);
    expect(at()).toEqual([0, 0]);
    expect(told).toEqual(['answered', 'answered', 'drained']);
    await stopSoon(clock, fetcher);
  });

  it('waits for the next due time when that comes before the poll, and never for less than a moment', async () => {
    const { clock, fetcher, world, at } = makeFetcher();
    const waits = [300, 0, 5_000, -7];
    world.answer = async () => ({ nextDueAt: clock.now() + (waits.shift() ?? 1e9) });
    fetcher.start();
    await clock.advance(1_400);
    expect(at()).toEqual([0, 300, 301, 1_301, 1_302]);
    await stopSoon(clock, fetcher);
  });

  it('looks again at once when it is woken, and is not drained until it has', async () => {
    const { clock, fetcher, at } = makeFetcher();
    fetcher.start();
    await clock.advance(100);
    fetcher.wake();
    expect(fetcher.drained).toBe(false);
    await clock.advance(0);
    expect(at()).toEqual([0, 100]);
    expect(fetcher.drained).toBe(true);
    await stopSoon(clock, fetcher);
  });

  it('does not trust an answer that was under way when it was woken', async () => {
    const { clock, fetcher, world, told, at } = makeFetcher();
    const slow = Promise.withResolvers<Partial<Claim>>();
    world.answer = () => slow.promise;
    fetcher.start();
    await clock.advance(10);
    fetcher.wake();
    world.answer = async () => ({});
    slow.resolve({});
    await clock.advance(0);
    expect(at().slice(0, 2)).toEqual([0, 10]);
    expect(told.slice(0, 2)).toEqual(['answered', 'answered']);
    await stopSoon(clock, fetcher);
  });

  it('does not look again for room that it has no use for', async () => {
    const { clock, fetcher, at } = makeFetcher();
    fetcher.start();
    await clock.advance(100);
    fetcher.room();
    await clock.advance(100);
    expect(at()).toEqual([0]);
    await stopSoon(clock, fetcher);
  });

  it('claims nothing while all places are taken, and as much as is free when there is room', async () => {
    const { clock, fetcher, world, claims } = makeFetcher();
    world.capacity = { ...idle, running: 10 };
    fetcher.start();
    await clock.advance(60_000);
    expect(claims).toEqual([]);
    fetcher.room();
    // Whatever else ends in the same turn counts too.
    world.capacity = { ...idle, running: 7 };
    await clock.advance(0);
    expect(claims.map(({ request }) => request.limit)).toEqual([3]);
    await stopSoon(clock, fetcher);
  });

  it('ends at once when it is stopped, whatever it waits for', async () => {
    for (const capacity of [idle, { ...idle, running: 10 }]) {
      const { clock, fetcher, world, claims } = makeFetcher();
      world.capacity = capacity;
      fetcher.start();
      await clock.advance(10);
      const before = claims.length;
      const stopped = fetcher.stop();
      await clock.advance(0);
      await stopped;
      await clock.advance(10_000);
      expect(claims).toHaveLength(before);
    }
  });
});

describe('a fetcher claims', () => {
  it.each<[string, Partial<Capacity>, number | null]>([
    ['as many as can run when it knows no duration', {}, 10],
    ['five more when a run takes 100 ms', { meanRunMs: 100 }, 15],
    ['at most nine per place ahead, however short the runs are', { meanRunMs: 0.01 }, 100],
    ['no more ahead when a run takes long', { meanRunMs: 10_000 }, 10],
    ['only whole jobs ahead', { meanRunMs: 90 }, 15],
    ['what is not running yet', { running: 4 }, 6],
    ['what is neither running nor waiting here', { meanRunMs: 100, running: 5, buffered: 2 }, 8],
    ['nothing yet while little room is left and jobs wait here', { meanRunMs: 100, running: 5, buffered: 3 }, null],
    ['nothing yet while even one job waits here', { meanRunMs: 100, running: 8, buffered: 1 }, null],
    ['again when half of the room is free', { meanRunMs: 50, running: 8, buffered: 2 }, 10],
    ['whatever is free when no job waits here', { meanRunMs: 100, running: 9 }, 6],
    ['while not too many outcomes wait to be recorded', { settling: 180 }, 10],
    ['nothing while too many do', { settling: 181 }, null],
  ])('%s', async (_, capacity, limit) => {
    const { clock, fetcher, world, claims } = makeFetcher();
    world.capacity = { ...idle, ...capacity };
    fetcher.start();
    await clock.advance(0);
    expect(claims[0]?.request.limit ?? null).toBe(limit);
    if (limit !== null) expect(claims[0]?.request).toMatchObject({ worker: 'w', leaseMs: 30_000 });
    await stopSoon(clock, fetcher);
  });
});

it('a fetcher asks for no more than a thousand jobs at once, however many places there are', async () => {
  const { clock, fetcher, claims } = makeFetcher({ concurrency: 5_000 });
  fetcher.start();
  await clock.advance(0);
  expect(claims[0]?.request.limit).toBe(1_000);
  await stopSoon(clock, fetcher);
});

describe('a fetcher in a storm', () => {
  const second = { ...someJob, lane: 'retry' } as ClaimedJob;
  /** After a claim that brought these; then the worker is as the test says. */
  async function afterClaim(brought: readonly ClaimedJob[], capacity: Partial<Capacity>, { news = false } = {}) {
    const parts = makeFetcher();
    if (news) parts.fetcher.newWork();
    parts.world.answer = async () => {
      parts.world.answer = async () => ({});
      parts.world.capacity = { ...idle, ...capacity };
      return { jobs: [...brought, ...jobs(10 - brought.length)] };
    };
    parts.fetcher.start();
    await parts.clock.advance(0);
    return parts;
  }

  it.each<[string, number, number]>([
    ['claims less far ahead when most of the last claim were second chances', 6, 30],
    ['and as far as ever when they were half of it', 5, 100],
  ])('%s', async (_, count, limit) => {
    const { clock, fetcher, claims } = await afterClaim(new Array(count).fill(second), { meanRunMs: 0.01 });
    expect(claims[1]?.request.limit).toBe(limit);
    await stopSoon(clock, fetcher);
  });

  it('asks at once when somebody made work, however full its buffer is, but not for retries of its own', async () => {
    const full = { meanRunMs: 0.01, running: 10, buffered: 19 };
    const { clock, fetcher, claims } = await afterClaim(new Array(10).fill(second), full);
    expect(claims).toHaveLength(1);
    fetcher.wake();
    await clock.advance(0);
    expect(claims).toHaveLength(1);
    fetcher.newWork();
    await clock.advance(0);
    expect(claims[1]?.request.limit).toBe(1);
    await stopSoon(clock, fetcher);
  });

  it('claims nothing ahead for a while after fresh work came in', async () => {
    const full = { running: 10, buffered: 20 };
    const { clock, fetcher, claims, world } = await afterClaim(new Array(9).fill(second), full, { news: true });
    fetcher.newWork();
    await clock.advance(0);
    // As full as it may be: not even for fresh work is more claimed than will start soon.
    expect(claims).toHaveLength(1);
    world.capacity = { ...idle, meanRunMs: 0.01 };
    fetcher.wake();
    await clock.advance(0);
    expect(claims[1]?.request.limit).toBe(10);
    await stopSoon(clock, fetcher);
  });

  /** Claims that take 4 ms and bring second chances, the first one also a fresh job; 101 ms of them. */
  async function stormOf(capacity: Partial<Capacity>) {
    const parts = makeFetcher({ concurrency: 30 });
    parts.world.capacity = { ...idle, ...capacity };
    parts.world.answer = async ({ limit }) => {
      const fresh = jobs(parts.claims.length === 1 ? 1 : 0);
      await new Promise<void>((resolve) => parts.clock.after(4, resolve));
      return { jobs: [...fresh, ...new Array(limit - fresh.length).fill(second)] };
    };
    parts.fetcher.newWork();
    parts.fetcher.start();
    await parts.clock.advance(101);
    return parts;
  }
  const limits = (claims: readonly { request: ClaimRequest }[]): number[] => claims.map(({ request }) => request.limit);

  it('only probes second chances made in vain while fresh work comes in: ten at once, three rests for a claim', async () => {
    const { clock, fetcher, claims, at } = await stormOf({ inVain: true });
    expect(at().slice(0, 6)).toEqual([0, 16, 32, 48, 64, 80]);
    expect(limits(claims).slice(0, 6)).toEqual([30, 12, 10, 10, 10, 10]);
    await stopSoon(clock, fetcher);
  });

  it('asks for more the more fresh work it finds, without a rest, however vain second chances are', async () => {
    const { clock, fetcher, claims, world, at } = await stormOf({ inVain: true });
    // With a second chance among them: without any, there is nothing to be careful with.
    world.answer = async ({ limit }) => ({ jobs: claims.length < 14 ? [second, ...jobs(limit - 1)] : [] });
    await clock.advance(10);
    const first = claims.length;
    fetcher.newWork();
    await clock.advance(1);
    expect(limits(claims).slice(first, first + 3)).toEqual([10, 28, 30]);
    expect(new Set(at().slice(first)).size).toBe(1);
    await stopSoon(clock, fetcher);
  });

  it('asks for all it has room for once no second chances are left, however vain the last ones were', async () => {
    const { clock, fetcher, claims, world } = await stormOf({ inVain: true });
    world.answer = async () => ({ jobs: jobs(5) });
    await clock.advance(10);
    const first = claims.length;
    fetcher.newWork();
    await clock.advance(1);
    fetcher.newWork();
    await clock.advance(1);
    expect(limits(claims).slice(first)).toEqual([10, 30]);
    await stopSoon(clock, fetcher);
  });

  it('ends the rest when somebody made work, but not for retries of its own', async () => {
    const { clock, fetcher, at } = await stormOf({ inVain: true });
    expect(at().at(-1)).toBe(96);
    fetcher.wake();
    await clock.advance(1);
    expect(at().at(-1)).toBe(96);
    fetcher.newWork();
    await clock.advance(0);
    expect(at().at(-1)).toBe(102);
    await stopSoon(clock, fetcher);
  });

  it('goes on as before once no fresh work has come in for a while', async () => {
    const { clock, fetcher, claims, at } = await stormOf({ inVain: true });
    await clock.advance(1_000);
    const [before, last] = at().slice(-2) as [number, number];
    expect(last - before).toBe(4);
    expect(limits(claims).at(-1)).toBe(30);
    await stopSoon(clock, fetcher);
  });

  it('neither rests nor probes when second chances do some good', async () => {
    const { clock, fetcher, claims, at } = await stormOf({ inVain: false });
    expect(at().slice(0, 4)).toEqual([0, 4, 8, 12]);
    expect(new Set(limits(claims))).toEqual(new Set([30]));
    await stopSoon(clock, fetcher);
  });

  it('waits for room to be worth while when no storm blows, whoever made work', async () => {
    const { clock, fetcher, claims } = await afterClaim([], { meanRunMs: 0.01, running: 10, buffered: 89 });
    fetcher.newWork();
    await clock.advance(0);
    expect(claims).toHaveLength(1);
    await stopSoon(clock, fetcher);
  });
});

describe('a fetcher whose store does not answer', () => {
  it('pauses longer and longer, up to a few seconds, and not at all after an answer', async () => {
    const { clock, fetcher, world, told, at } = makeFetcher();
    const refuse = (): Promise<never> => Promise.reject(new Error('away'));
    world.answer = refuse;
    fetcher.start();
    await clock.advance(60_000);
    const pauses = at().map((time, index, all) => time - (all[index - 1] ?? 0));
    for (const [index, usual] of [100, 200, 400, 800, 1_600, 2_000, 2_000].entries()) {
      expect(pauses[index + 1]).toBeGreaterThanOrEqual(usual * 0.5);
      expect(pauses[index + 1]).toBeLessThanOrEqual(usual * 1.5);
    }
    expect(new Set(told)).toEqual(new Set(['away']));
    world.answer = async () => {
      world.answer = refuse;
      return {};
    };
    await clock.advance(3_000 + 1_000);
    const answered = told.indexOf('answered');
    expect(answered).toBeGreaterThan(0);
    await clock.advance(1_500);
    const after = at().slice(answered);
    expect((after[2] as number) - (after[1] as number)).toBeLessThanOrEqual(150);
    await stopSoon(clock, fetcher);
  });

  it('is not hurried by a wake-up, but by being stopped', async () => {
    const { clock, fetcher, world, claims } = makeFetcher();
    world.answer = () => Promise.reject(new Error('away'));
    fetcher.start();
    await clock.advance(0);
    fetcher.wake();
    await clock.advance(49);
    expect(claims).toHaveLength(1);
    const stopped = fetcher.stop();
    await clock.advance(0);
    await stopped;
    await clock.advance(10_000);
    expect(claims).toHaveLength(1);
  });

  it('takes over what comes late: nobody else has it', async () => {
    const { clock, fetcher, world, accepted, told } = makeFetcher();
    const slow = Promise.withResolvers<Partial<Claim>>();
    world.answer = () => slow.promise;
    fetcher.start();
    await clock.advance(5_000);
    expect(told).toEqual(['the store gave no answer within 5s']);
    world.answer = async () => ({});
    slow.resolve({ jobs: jobs(2) });
    await clock.advance(0);
    expect(accepted.map((claim) => claim.jobs.length)).toEqual([2]);
    await stopSoon(clock, fetcher);
  });
});

describe('a fetcher that hears of a suspect', () => {
  const isForSuspects = ({ request }: { request: ClaimRequest }): boolean => request.queues[0]?.suspect === 1;
  const busy = { ...idle, running: 1 };

  /** A store with a suspect in it, which runs as soon as it is claimed. */
  function withSuspect() {
    const made = makeFetcher();
    made.world.answer = async ({ queues }) => {
      if (queues[0]?.suspect !== 1) return { suspectsWait: true };
      made.world.capacity = busy;
      return { jobs: jobs(1) };
    };
    return made;
  }

  it('waits until nothing runs, takes it alone, and goes on when it has ended', async () => {
    const { clock, fetcher, world, claims } = withSuspect();
    fetcher.start();
    world.capacity = busy;
    await clock.advance(5_000);
    expect(claims.filter(isForSuspects)).toEqual([]);
    world.capacity = { ...idle, buffered: 1 };
    fetcher.room();
    await clock.advance(0);
    expect(claims.filter(isForSuspects)).toEqual([]);
    world.capacity = idle;
    fetcher.room();
    await clock.advance(0);
    expect(claims.at(-1)?.request).toMatchObject({
      limit: 1,
      queues: [{ share: 1, suspect: 1, retry: 0, redrive: 0 }],
    });
    const before = claims.length;
    await clock.advance(5_000);
    expect(claims).toHaveLength(before);
    world.capacity = idle;
    world.answer = async () => ({});
    fetcher.room();
    await clock.advance(0);
    expect(claims).toHaveLength(before + 1);
    await stopSoon(clock, fetcher);
  });

  it('waits no longer than a lease, neither for an empty worker nor for the suspect', async () => {
    const { clock, fetcher, world, claims } = withSuspect();
    fetcher.start();
    world.capacity = busy;
    await clock.advance(29_999);
    expect(claims.filter(isForSuspects)).toEqual([]);
    await clock.advance(1);
    expect(claims.filter(isForSuspects)).toHaveLength(1);
    const before = claims.length;
    await clock.advance(29_999);
    expect(claims).toHaveLength(before);
    await clock.advance(1);
    expect(claims.length).toBeGreaterThan(before);
    await stopSoon(clock, fetcher);
  });

  it('takes none when it is stopped before it is empty', async () => {
    const { clock, fetcher, world, claims } = withSuspect();
    fetcher.start();
    world.capacity = busy;
    await clock.advance(1_000);
    await stopSoon(clock, fetcher);
    await clock.advance(60_000);
    expect(claims.filter(isForSuspects)).toEqual([]);
  });

  it('that another worker took leaves this one alone until the next poll', async () => {
    const { clock, fetcher, world, claims } = makeFetcher();
    world.answer = async () => ({ suspectsWait: true });
    fetcher.start();
    await clock.advance(999);
    expect(claims.filter(isForSuspects)).toHaveLength(1);
    await clock.advance(2);
    expect(claims.filter(isForSuspects)).toHaveLength(2);
    await stopSoon(clock, fetcher);
  });
});

async function stopSoon(clock: VirtualClock, fetcher: Fetcher): Promise<void> {
  const stopped = fetcher.stop();
  // A claim may still be under way.
  await clock.advance(10);
  await stopped;
}
