import { describe, expect, it } from 'vitest';
import type { ClaimedJob, Heartbeat, HeartbeatAnswer } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Hand } from './hand.ts';
import { Heart, type Held } from './heartbeat.ts';
import { Lease } from './lease.ts';

const LEASE_MS = 30_000;
const kept: HeartbeatAnswer = { kept: true, leaseEndsAt: 0, cancelRequested: false };

/** A heart, the jobs it holds, and a store that answers as the test says. */
function makeHeart(count = 1) {
  const clock = new VirtualClock();
  const said: string[] = [];
  const held: Held[] = Array.from({ length: count }, (_, n) => ({
    lease: new Lease({ id: `job-${n}`, run: 1, worker: 'w', claimedAt: 0 } as ClaimedJob, LEASE_MS, 0, clock),
    unsentProgress: null,
    onLost: () => said.push(`job-${n} lost`),
    onCancel: () => said.push(`job-${n} to be cancelled`),
  }));
  const sent: { at: number; beats: readonly Heartbeat[] }[] = [];
  const world = { answer: async (beats: readonly Heartbeat[]): Promise<HeartbeatAnswer[]> => beats.map(() => kept) };
  const store = {
    heartbeat(beats: readonly Heartbeat[]) {
      sent.push({ at: clock.monotonic(), beats });
      return world.answer(beats);
    },
  };
  const heart = new Heart(
    store,
    clock,
    LEASE_MS,
    () => held,
    (error) => said.push((error as Error).message),
  );
  return { clock, heart, held, sent, said, world, first: held[0] as Held };
}

describe('a heart', () => {
  it('beats three times in a lease, and so keeps it for as long as the store answers', async () => {
    const { clock, heart, first, sent } = makeHeart();
    heart.start();
    await clock.advance(10 * LEASE_MS - 1);
    expect(sent.slice(0, 3).map(({ at }) => at)).toEqual([10_000, 20_000, 30_000]);
    expect(first.lease.ended).toBe(false);
    heart.stop();
    await clock.advance(LEASE_MS);
    expect(first.lease.ended).toBe(true);
  });

  it('goes on beating while the store hangs or fails, and says what failed', async () => {
    const { clock, heart, sent, said, world } = makeHeart();
    world.answer = () => new Promise(() => {});
    heart.start();
    await clock.advance(20_000);
    world.answer = () => Promise.reject(new Error('away'));
    await clock.advance(20_000);
    expect(sent).toHaveLength(4);
    expect(said).toEqual(['away', 'away']);
    heart.stop();
  });

  it('asks the store nothing when nothing is held', async () => {
    const { clock, heart, sent } = makeHeart(0);
    heart.start();
    await clock.advance(LEASE_MS);
    expect(sent).toEqual([]);
    expect(await heart.beat([])).toBe(true);
    heart.stop();
  });

  it('passes on which jobs were lost and which are to be cancelled, and renews only what was kept', async () => {
    const { clock, heart, held, said, world } = makeHeart(3);
    for (const one of held) one.unsentProgress = '1';
    world.answer = async () => [{ kept: false }, kept, { ...kept, cancelRequested: true }];
    await clock.advance(20_000);
    expect(await heart.beat(held)).toBe(false);
    expect(said).toEqual(['job-0 lost', 'job-2 to be cancelled']);
    await clock.advance(10_000);
    expect(held.map(({ lease }) => lease.ended)).toEqual([true, false, false]);
    expect(held.map(({ unsentProgress }) => unsentProgress)).toEqual(['1', null, null]);
  });

  it('counts a lease from before it asked, however long the answer took', async () => {
    const { clock, heart, held, first, world } = makeHeart();
    const slow = Promise.withResolvers<HeartbeatAnswer[]>();
    world.answer = () => slow.promise;
    await clock.advance(10_000);
    const beat = heart.beat(held);
    await clock.advance(5_000);
    slow.resolve([kept]);
    expect(await beat).toBe(true);
    await clock.advance(24_999);
    expect(first.lease.ended).toBe(false);
    await clock.advance(1);
    expect(first.lease.ended).toBe(true);
  });

  it('sends progress soon, in one beat however often it is told, and once', async () => {
    const { clock, heart, first, sent } = makeHeart();
    first.unsentProgress = '50';
    heart.soon();
    heart.soon();
    await clock.advance(499);
    expect(sent).toEqual([]);
    await clock.advance(1);
    expect(sent).toMatchObject([{ beats: [{ id: 'job-0', run: 1, worker: 'w', leaseMs: LEASE_MS, progress: '50' }] }]);
    heart.soon();
    await clock.advance(500);
    expect(sent[1]?.beats[0]).not.toHaveProperty('progress');
    heart.stop();
  });

  it('keeps progress that was made while a beat was under way', async () => {
    const { clock, heart, held, first, world } = makeHeart();
    const slow = Promise.withResolvers<HeartbeatAnswer[]>();
    world.answer = () => slow.promise;
    first.unsentProgress = '50';
    const beat = heart.beat(held);
    first.unsentProgress = '60';
    slow.resolve([kept]);
    await beat;
    expect(first.unsentProgress).toBe('60');
    await clock.advance(0);
  });

  it('is still when it was stopped, whether it was started or not', async () => {
    const { clock, heart, sent } = makeHeart();
    heart.start();
    heart.soon();
    heart.stop();
    heart.soon();
    heart.start();
    expect(clock.pending).toBe(0);
    await clock.advance(LEASE_MS);
    expect(sent).toEqual([]);
    const never = makeHeart();
    never.heart.stop();
    never.heart.soon();
    expect(never.clock.pending).toBe(0);
  });
});

describe('a job in hand', () => {
  const makeHand = (cancelRequested = false): Hand => {
    const job = { id: 'job', run: 1, worker: 'w', claimedAt: 0, cancelRequested } as ClaimedJob;
    return new Hand(new Lease(job, LEASE_MS, 0, new VirtualClock()));
  };

  it('is lost when a heartbeat says so, but not while its end is being recorded', () => {
    const [running, settling] = [makeHand(), makeHand()];
    settling.settlingSince = 0;
    for (const hand of [running, settling]) hand.onLost();
    expect([running.lease.lost, settling.lease.lost]).toEqual([true, false]);
  });

  it('is to be cancelled from the claim on, or from the heartbeat that says so', () => {
    expect(makeHand(true).cancelRequested).toBe(true);
    const hand = makeHand();
    expect(hand.cancelRequested).toBe(false);
    hand.onCancel();
    expect(hand.cancelRequested).toBe(true);
  });

  it('has no progress before it runs', () => {
    const hand = makeHand();
    hand.unsentProgress = '1';
    expect(hand.unsentProgress).toBeNull();
  });
});
