import { describe, expect, it } from 'vitest';
import type {
  Claim,
  ClaimedJob,
  ClaimRequest,
  GatedClaim,
  GatedClaimRequest,
  LimitedClaim,
  LimitedClaimRequest,
} from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Fetcher } from './fetch.ts';
import { planWork, type WorkOptions } from './options.ts';
import { type Load, Prefetch } from './prefetch.ts';

const idle: Load = { running: 0, buffered: 0, leavingFirst: 0, settling: 0 };
const full: Load = { ...idle, running: 10 };
const someJob = { queue: 'default', lane: 'fresh' } as ClaimedJob;
const jobs = (count: number): ClaimedJob[] => new Array(count).fill(someJob);

/** A fetcher whose worker and store are what the test says. Claims that the test does not answer find nothing. */
function makeFetcher(options: WorkOptions = {}) {
  const clock = new VirtualClock();
  const plan = planWork({ poll: '1s', lease: '30s', concurrency: 10, ...options });
  const claims: { request: ClaimRequest; at: number }[] = [];
  const told: string[] = [];
  const gatedClaims: { request: GatedClaimRequest; at: number }[] = [];
  const limitedClaims: { request: LimitedClaimRequest; at: number }[] = [];
  const accepted: Pick<Claim, 'jobs'>[] = [];
  const world = {
    load: idle,
    answer: async (_: ClaimRequest): Promise<Partial<Claim>> => ({}),
    gatedAnswer: async (_: GatedClaimRequest): Promise<Partial<GatedClaim>> => ({}),
    limitedAnswer: async (_: LimitedClaimRequest): Promise<Partial<LimitedClaim>> => ({}),
    accept: (claim: Pick<Claim, 'jobs'>): unknown => accepted.push(claim),
    canTry: true,
    trial: async (): Promise<void> => {},
  };
  const prefetch = new Prefetch(clock, plan.concurrency);
  const fetcher = new Fetcher({
    clock,
    plan,
    worker: 'w',
    knows: new Map(),
    rejections: { avoided: () => undefined, untilNext: () => Number.POSITIVE_INFINITY },
    callTimeoutMs: 5_000,
    store: {
      async claim(request) {
        claims.push({ request, at: clock.monotonic() });
        return {
          jobs: [],
          now: clock.now(),
          nextDueAt: null,
          suspectsWait: false,
          gated: [],
          limited: false,
          ...(await world.answer(request)),
        };
      },
      async claimLimited(request) {
        limitedClaims.push({ request, at: clock.monotonic() });
        return { jobs: [], now: clock.now(), nextAt: null, ...(await world.limitedAnswer(request)) };
      },
      async claimGated(request) {
        gatedClaims.push({ request, at: clock.monotonic() });
        return { jobs: [], now: clock.now(), nextAt: null, events: [], ...(await world.gatedAnswer(request)) };
      },
    },
    prefetch,
    load: () => world.load,
    accept: (claim) => world.accept(claim),
    canTry: () => world.canTry,
    tryOut: () => world.trial(),
    onGate: () => {},
    onLimited: (limits) => told.push(`limited ${limits}`),
    onDrained: () => told.push('drained'),
    onError: (error) => told.push((error as Error).message),
    onAnswer: () => told.push('answered'),
  });
  return {
    clock,
    claims,
    gatedClaims,
    limitedClaims,
    told,
    accepted,
    world,
    prefetch,
    fetcher,
    at: () => claims.map(({ at }) => at),
  };
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

  it('without a free place claims ahead, waits for a place and then asks for jobs behind limits', async () => {
    const { clock, fetcher, world, prefetch, limitedClaims, at } = makeFetcher();
    prefetch.ran(5);
    world.load = full;
    world.answer = async () => ({ limited: true });
    fetcher.start();
    await clock.advance(900);
    expect([at(), limitedClaims]).toEqual([[0], []]);
    world.load = { ...full, running: 9 };
    fetcher.wake('room');
    await clock.advance(0);
    expect(limitedClaims.map((one) => one.at)).toEqual([900]);
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

  it('that found less than it asked for, while the store has more that is due, looks again at once', async () => {
    const { clock, fetcher, world, told, at } = makeFetcher();
    const answers: Partial<Claim>[] = [
      { jobs: jobs(1), nextDueAt: clock.now() },
      { jobs: jobs(1), nextDueAt: 0 },
    ];
    world.answer = async () => answers.shift() ?? {};
    fetcher.start();
    await clock.advance(0);
    expect(at()).toEqual([0, 0, 0]);
    expect(told).toEqual(['answered', 'answered', 'answered', 'drained']);
    await stopSoon(clock, fetcher);
  });

  it('waits for the next due time when that comes before the poll, and a moment when the store gave nothing', async () => {
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
    fetcher.wake('due');
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
    fetcher.wake('due');
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
    fetcher.wake('room');
    await clock.advance(100);
    expect(at()).toEqual([0]);
    await stopSoon(clock, fetcher);
  });

  it('claims nothing while all places are taken, and as much as is free when there is room', async () => {
    const { clock, fetcher, world, claims } = makeFetcher();
    world.load = full;
    fetcher.start();
    await clock.advance(60_000);
    expect(claims).toEqual([]);
    fetcher.wake('room');
    // Whatever else ends in the same turn counts too.
    world.load = { ...idle, running: 7 };
    await clock.advance(0);
    expect(claims.map(({ request }) => request.limit)).toEqual([3]);
    await stopSoon(clock, fetcher);
  });

  it('ends at once when it is stopped, whatever it waits for', async () => {
    for (const load of [idle, full]) {
      const { clock, fetcher, world, claims } = makeFetcher();
      world.load = load;
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

it('a fetcher says who claims, and for how long', async () => {
  const { clock, fetcher, claims } = makeFetcher();
  fetcher.start();
  await clock.advance(0);
  expect(claims[0]?.request).toMatchObject({ worker: 'w', leaseMs: 30_000, limit: 10 });
  await stopSoon(clock, fetcher);
});

describe('a fetcher whose worker is full of retries', () => {
  it('claims at once when there is new work, but not when a retry of its own falls due', async () => {
    const { clock, fetcher, claims, world } = makeFetcher();
    const retry = { ...someJob, lane: 'retry' } as ClaimedJob;
    world.answer = async () => {
      world.load = full;
      return { jobs: new Array(10).fill(retry) };
    };
    fetcher.start();
    await clock.advance(0);
    fetcher.wake('due');
    await clock.advance(0);
    expect(claims).toHaveLength(1);
    world.load = { ...full, buffered: 1 };
    fetcher.wake('new-work');
    await clock.advance(0);
    expect(claims).toHaveLength(1);
    world.load = full;
    fetcher.wake('new-work');
    await clock.advance(0);
    expect(claims.map(({ request }) => request.limit)).toEqual([10, 1]);
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
      expect(pauses[index + 1]).toBeLessThanOrEqual(usual);
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
    expect((after[2] as number) - (after[1] as number)).toBeLessThanOrEqual(100);
    await stopSoon(clock, fetcher);
  });

  it('is not hurried by a wake-up, but by being stopped', async () => {
    const { clock, fetcher, world, claims } = makeFetcher();
    world.answer = () => Promise.reject(new Error('away'));
    fetcher.start();
    await clock.advance(0);
    fetcher.wake('due');
    await clock.advance(49);
    expect(claims).toHaveLength(1);
    const stopped = fetcher.stop();
    await clock.advance(0);
    await stopped;
    await clock.advance(10_000);
    expect(claims).toHaveLength(1);
  });

  it('takes over what comes late: no other worker has it', async () => {
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

describe('a fetcher whose own code fails', () => {
  it('reports the error as it is, and goes on', async () => {
    const { clock, fetcher, world, told, accepted } = makeFetcher();
    world.accept = () => {
      world.accept = (claim) => accepted.push(claim);
      throw new TypeError('a mistake of ours');
    };
    fetcher.start();
    await clock.advance(1_000);
    expect(told.slice(0, 4)).toEqual(['answered', 'a mistake of ours', 'answered', 'drained']);
    expect(accepted).not.toEqual([]);
    await stopSoon(clock, fetcher);
  });

  it('reports it, too, when it takes over an answer that came late', async () => {
    const { clock, fetcher, world, told } = makeFetcher();
    const slow = Promise.withResolvers<Partial<Claim>>();
    world.answer = () => slow.promise;
    world.accept = () => {
      throw new TypeError('a mistake of ours');
    };
    fetcher.start();
    await clock.advance(5_000);
    slow.resolve({ jobs: jobs(1) });
    await clock.advance(0);
    expect(told).toEqual(['the store gave no answer within 5s', 'a mistake of ours']);
    await stopSoon(clock, fetcher);
  });
});

describe('a fetcher that hears of a suspect', () => {
  const isForSuspects = ({ request }: { request: ClaimRequest }): boolean => request.queues[0]?.suspect === 1;
  const suspect = { ...someJob, lane: 'suspect' } as ClaimedJob;

  /** A store with so many suspects in it, each of which is tried for as long as the test says. */
  function withSuspects(count: number, trialMs: number) {
    const made = makeFetcher();
    const trials: number[] = [];
    let left = count;
    made.world.answer = async ({ queues }) => {
      if (queues[0]?.suspect !== 1) return { suspectsWait: left > 0 };
      return { jobs: left-- > 0 ? [suspect] : [] };
    };
    made.world.trial = async () => {
      trials.push(made.clock.monotonic());
      await new Promise<void>((resolve) => made.clock.after(trialMs, resolve));
    };
    return { ...made, trials };
  }

  it('claims it at once, alone, and claims nothing else while its trial lasts', async () => {
    const { clock, fetcher, world, claims, trials } = withSuspects(1, 5_000);
    world.load = { ...idle, running: 9 };
    fetcher.start();
    await clock.advance(4_999);
    expect(claims.map(({ request }) => request)).toMatchObject([
      { limit: 1, queues: [{ suspect: 0 }] },
      { limit: 1, queues: [{ share: 1, suspect: 1, retry: 0, redrive: 0 }] },
    ]);
    expect(trials).toEqual([0]);
    await clock.advance(1);
    expect(claims.filter((claim) => !isForSuspects(claim))).toHaveLength(2);
    await stopSoon(clock, fetcher);
  });

  it('tries one after the other for up to a lease, then claims other work before it goes on', async () => {
    const { clock, fetcher, trials, claims } = withSuspects(5, 12_000);
    fetcher.start();
    await clock.advance(59_000);
    expect(trials).toEqual([0, 12_000, 24_000, 36_000, 48_000]);
    expect(claims.filter((claim) => !isForSuspects(claim)).map(({ at }) => at)).toEqual([0, 36_000]);
    await clock.advance(1_000);
    await stopSoon(clock, fetcher);
  });

  it('that another worker took asks again after the poll, or when it is woken', async () => {
    const { clock, fetcher, world, claims } = makeFetcher();
    world.answer = async () => ({ suspectsWait: true });
    fetcher.start();
    await clock.advance(999);
    expect(claims.filter(isForSuspects)).toHaveLength(1);
    await clock.advance(2);
    expect(claims.filter(isForSuspects)).toHaveLength(2);
    fetcher.wake('retry-ended');
    await clock.advance(0);
    expect(claims.filter(isForSuspects)).toHaveLength(3);
    await stopSoon(clock, fetcher);
  });

  it('does not miss a wake-up that comes while it asks for a suspect that another worker took', async () => {
    const { clock, fetcher, world, claims, told } = makeFetcher({ poll: '1h' });
    world.answer = async ({ queues }) => {
      if (queues[0]?.suspect === 1) fetcher.wake('new-work');
      return { suspectsWait: claims.length < 3 };
    };
    fetcher.start();
    await clock.advance(0);
    expect(claims.filter((claim) => !isForSuspects(claim))).not.toHaveLength(1);
    // The worker is not idle before it has looked again.
    expect(told.slice(0, 3)).toEqual(['answered', 'answered', 'answered']);
    await stopSoon(clock, fetcher);
  });

  it('asks for none while its worker may not take one', async () => {
    const { clock, fetcher, world, claims } = withSuspects(1, 1_000);
    world.canTry = false;
    fetcher.start();
    await clock.advance(10_000);
    expect(claims.filter(isForSuspects)).toEqual([]);
    expect(claims.length).toBeGreaterThan(5);
    await stopSoon(clock, fetcher);
  });
});

async function stopSoon(clock: VirtualClock, fetcher: Fetcher): Promise<void> {
  const stopped = fetcher.stop();
  // A claim may still be under way.
  await clock.advance(10);
  await stopped;
}

describe('jobs behind gates', () => {
  it('are asked for before the next ordinary claim, for up to half of the places', async () => {
    const { clock, fetcher, world, claims, gatedClaims } = makeFetcher({ concurrency: 20 });
    world.answer = async () => (claims.length === 1 ? { gated: ['smtp', 'webhook/a'] } : {});
    fetcher.start();
    await clock.advance(0);
    expect(gatedClaims.map(({ request }) => [request.resource, request.limit])).toEqual([
      ['smtp', 5],
      ['webhook/a', 5],
    ]);
    expect(claims.map(({ request }) => request.limit)).toEqual([20, 20]);
    await fetcher.stop();
  });

  it('are not asked for again before their gate may admit one to this worker', async () => {
    const { clock, fetcher, world, gatedClaims } = makeFetcher({ poll: '1m' });
    world.answer = async () => ({ gated: ['smtp'] });
    world.gatedAnswer = async () => ({ nextAt: clock.now() + 5_000 });
    const start = clock.monotonic();
    fetcher.start();
    await clock.advance(12_000);
    expect(gatedClaims.map(({ at }) => at - start)).toEqual([0, 5_000, 10_000]);
    await fetcher.stop();
  });

  it('are asked for at the pace of the poll while the probe of another worker may keep its slot for longer', async () => {
    const { clock, fetcher, world, gatedClaims } = makeFetcher({ poll: '1s' });
    world.answer = async () => ({ gated: ['smtp'] });
    world.gatedAnswer = async () => ({ nextAt: clock.now() + 35_000 });
    const start = clock.monotonic();
    fetcher.start();
    await clock.advance(2_500);
    expect(gatedClaims.map(({ at }) => at - start)).toEqual([0, 1_000, 2_000]);
    await fetcher.stop();
  });

  it('are asked for at the pace of the poll while only another state of the gate would admit one', async () => {
    const { clock, fetcher, world, gatedClaims } = makeFetcher({ poll: '1s' });
    world.answer = async () => ({ gated: ['smtp'] });
    const start = clock.monotonic();
    fetcher.start();
    await clock.advance(2_500);
    expect(gatedClaims.map(({ at }) => at - start)).toEqual([0, 1_000, 2_000]);
    await fetcher.stop();
  });
});

describe('jobs behind limits', () => {
  it('are claimed before the next ordinary claim, for half of the free places while ordinary jobs come', async () => {
    const { clock, fetcher, world, claims, limitedClaims } = makeFetcher({ concurrency: 20 });
    world.answer = async () =>
      claims.length === 1 ? { jobs: jobs(1), nextDueAt: 0, limited: true } : { limited: true };
    fetcher.start();
    await clock.advance(0);
    expect(limitedClaims.map(({ request }) => request.limit)).toEqual([10]);
    expect(claims.map(({ request }) => request.limit)).toEqual([20, 20]);
    await fetcher.stop();
  });

  it('leave claims to ordinary jobs, also when there is a single place', async () => {
    const { clock, fetcher, world, claims, limitedClaims } = makeFetcher({ concurrency: 1 });
    world.answer = async () => ({ limited: true });
    world.limitedAnswer = async () => {
      world.load = { ...idle, running: 1 };
      return { jobs: jobs(1) };
    };
    fetcher.start();
    for (let ended = 0; ended < 6; ended++) {
      await clock.advance(2_000);
      world.load = idle;
      fetcher.wake('limit-freed');
      fetcher.wake('room');
    }
    expect(limitedClaims.length).toBeGreaterThan(2);
    expect(claims.length).toBeGreaterThanOrEqual(limitedClaims.length / 2);
    await stopSoon(clock, fetcher);
  });

  it('are claimed ahead while that brings as many as it asks for', async () => {
    const { clock, fetcher, world, prefetch, limitedClaims } = makeFetcher({ concurrency: 10 });
    prefetch.ran(10);
    world.answer = async () => ({ limited: true });
    world.limitedAnswer = async ({ limit }) => {
      if (limitedClaims.length === 4) world.load = { ...idle, running: 10 };
      return { jobs: jobs(limitedClaims.length < 3 ? limit : 4), nextAt: clock.now() };
    };
    fetcher.start();
    await clock.advance(0);
    expect(limitedClaims.map(({ request: { limit, ahead } }) => [limit, ahead])).toEqual([
      [10, 0],
      [60, 50],
      [60, 50],
      [10, 0],
    ]);
    await fetcher.stop();
  });

  it('are asked for without a claim of ordinary jobs in between, while none of those wait', async () => {
    const { clock, fetcher, world, prefetch, claims, limitedClaims } = makeFetcher({ concurrency: 10, poll: '1m' });
    prefetch.ran(10);
    world.answer = async () => ({ limited: true });
    world.limitedAnswer = async ({ limit }) => {
      if (limitedClaims.length % 20 === 0) world.load = { ...idle, running: 10, buffered: 50 };
      return { jobs: jobs(limit), nextAt: clock.now() };
    };
    fetcher.start();
    await clock.advance(0);
    expect([claims.length, limitedClaims.length]).toEqual([1, 20]);
    world.load = idle;
    fetcher.wake('new-work');
    await clock.advance(0);
    expect([claims.length, limitedClaims.length]).toEqual([2, 40]);
    await stopSoon(clock, fetcher);
  });

  it('are asked for again when one may start by time alone, and else at the pace of the poll', async () => {
    const { clock, fetcher, world, limitedClaims } = makeFetcher({ poll: '1m' });
    world.answer = async () => ({ limited: true });
    world.limitedAnswer = async () => ({ nextAt: limitedClaims.length < 3 ? clock.now() + 5_000 : null });
    const start = clock.monotonic();
    fetcher.start();
    await clock.advance(75_000);
    expect(limitedClaims.map(({ at }) => at - start)).toEqual([0, 5_000, 10_000, 70_000]);
    await fetcher.stop();
  });

  it('are asked for again at once when a key may have room again', async () => {
    const { clock, fetcher, world, limitedClaims } = makeFetcher({ poll: '1m' });
    world.answer = async () => ({ limited: true });
    const start = clock.monotonic();
    fetcher.start();
    await clock.advance(1_000);
    fetcher.wake('limit-freed');
    await clock.advance(1_000);
    expect(limitedClaims.map(({ at }) => at - start)).toEqual([0, 1_000]);
    await fetcher.stop();
  });

  it('are told of when their limits keep them waiting', async () => {
    const { clock, fetcher, world, told } = makeFetcher({ poll: '1m' });
    world.answer = async () => ({ limited: true });
    world.limitedAnswer = async () => ({ full: ['shopify'] });
    fetcher.start();
    await clock.advance(0);
    expect(told.filter((one) => one.startsWith('limited'))).toEqual(['limited shopify']);
    await fetcher.stop();
  });
});
