import { expect, it } from 'vitest';
import type { ClaimedJob } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Hand } from './hand.ts';
import { Hands } from './hands.ts';
import { Lease } from './lease.ts';

const clock = new VirtualClock();
const makeHand = (): Hand => new Hand(new Lease({ claimedAt: 0 } as ClaimedJob, 1_000, 0, clock));

it('holds those that were added and not deleted, in whatever order they go', () => {
  for (const order of [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ]) {
    const hands = new Hands();
    const all = [makeHand(), makeHand(), makeHand()];
    const left = new Set(all);
    for (const hand of all) hands.add(hand);
    for (const index of order) {
      const hand = all[index] as Hand;
      hands.delete(hand);
      left.delete(hand);
      expect(new Set(hands.list())).toEqual(left);
      expect(hands.size).toBe(left.size);
    }
  }
});

it('lists a copy, so that hands may go while it is read', () => {
  const hands = new Hands();
  const all = [makeHand(), makeHand()];
  for (const hand of all) hands.add(hand);
  const listed = hands.list();
  for (const hand of all) hands.delete(hand);
  expect(listed).toEqual(all);
});
