import { expect, it } from 'vitest';
import { type CallResult, type Left, whatIsLeft } from './what-is-left.ts';

const result = { due: 0, most: 10, want: 5, taken: 0, isMissed: false };

it.each<[string, Partial<CallResult>, Left]>([
  ['is not admissible', { due: null }, { rest: 0, isExhausted: false, isContended: false }],
  ['has no due job', {}, { rest: 0, isExhausted: true, isContended: false }],
  ['gave all that is due', { due: 4, taken: 4 }, { rest: 0, isExhausted: true, isContended: false }],
  ['has more due jobs', { due: 8, taken: 5 }, { rest: 3, isExhausted: false, isContended: false }],
  ['is being emptied by others', { due: 8, taken: 2 }, { rest: 6, isExhausted: false, isContended: true }],
  [
    'has fewer than wanted, and others took some',
    { due: 3, taken: 1 },
    { rest: 2, isExhausted: false, isContended: true },
  ],
  ['has more than was counted', { due: 10, taken: 10 }, { rest: Infinity, isExhausted: false, isContended: false }],
  [
    'gave its missed range',
    { due: 1, taken: 1, isMissed: true },
    { rest: Infinity, isExhausted: true, isContended: false },
  ],
  ['has an empty missed range', { isMissed: true }, { rest: Infinity, isExhausted: true, isContended: false }],
])('a partition that %s', (_, changes, left) => {
  expect(whatIsLeft({ ...result, ...changes })).toEqual(left);
});
