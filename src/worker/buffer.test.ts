import { expect, it } from 'vitest';
import type { Lane } from '../job.ts';
import { Buffer } from './buffer.ts';
import type { Hand } from './hand.ts';

const hand = (lane: Lane, name: string): Hand => ({ lease: { job: { lane, name } } }) as Hand;
const names = (hands: readonly Hand[]): string[] => hands.map(({ lease }) => lease.job.name);

it('a buffer hands out fresh jobs first, whenever they came, and each kind in its order', () => {
  const buffer = new Buffer();
  buffer.add(hand('retry', 'a'));
  buffer.add(hand('fresh', 'b'));
  buffer.add(hand('redrive', 'c'));
  buffer.add(hand('fresh', 'd'));
  expect(buffer.size).toBe(4);
  expect(names(buffer.take(1))).toEqual(['b']);
  buffer.add(hand('suspect', 'e'));
  buffer.add(hand('fresh', 'f'));
  expect(names(buffer.take(3))).toEqual(['d', 'f', 'a']);
  expect(names(buffer.take(9))).toEqual(['c', 'e']);
  expect(buffer.size).toBe(0);
  expect(buffer.take(1)).toEqual([]);
});
