import { expect, it } from 'vitest';
import { plotBars, plotColumns } from './plot.ts';

it('draws certain waits as whole bars on one scale', () => {
  const sure = (ms: number) => ({ minMs: ms, maxMs: ms, sampleMs: ms });
  expect(plotBars([sure(0), sure(1), sure(50), sure(100)], 10)).toEqual(['', '█', '█████', '██████████']);
});

it('draws what jitter may add, and the sample within it', () => {
  expect(plotBars([{ minMs: 50, maxMs: 100, sampleMs: 80 }], 10)).toEqual(['█████░░●░░']);
  expect(plotBars([{ minMs: 0, maxMs: 100, sampleMs: 0 }], 4)).toEqual(['●░░░']);
});

it('draws a column for each value, and none for nothing', () => {
  expect(plotColumns([0, 1, 4, 8])).toBe(' ▂▅█');
  expect(plotColumns([0, 0])).toBe('  ');
});
