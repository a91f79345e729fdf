import { describe, expect, it } from 'vitest';
import { partsOf } from './parts.ts';

describe('partsOf', () => {
  const bounds = { limit: 3, maxBytes: 10, bytesOf: (item: number) => item };

  it('splits a list by number and by bytes, in order', () => {
    expect(partsOf([1, 1, 1, 1, 8, 2, 1, 10], bounds)).toEqual([[1, 1, 1], [1, 8], [2, 1], [10]]);
  });

  it('gives an item that is larger than the bound a part of its own', () => {
    expect(partsOf([1, 11, 1], bounds)).toEqual([[1], [11], [1]]);
  });

  it('splits a list by bytes alone when there is no bound on the number', () => {
    const { limit: _, ...bytesOnly } = bounds;
    expect(partsOf([5, 5, 1, 30, 5, 0, 0, 0, 0, 5], bytesOnly)).toEqual([[5, 5], [1], [30], [5, 0, 0, 0, 0, 5]]);
  });

  it('makes no part of an empty list', () => {
    expect(partsOf([], bounds)).toEqual([]);
  });
});
