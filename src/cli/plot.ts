/** A wait on the plot: all of it up to `minMs` is certain, `maxMs` is the most, `sampleMs` one draw between them. */
export interface Bar {
  readonly minMs: number;
  readonly maxMs: number;
  readonly sampleMs: number;
}

/** Horizontal bars on one linear scale, at most `width` wide. */
export function plotBars(bars: readonly Bar[], width: number): string[] {
  const scaleMs = Math.max(1, ...bars.map(({ maxMs }) => maxMs));
  // Anything above nothing is at least one cell: 500 ms beside 30 s must not vanish.
  const cells = (ms: number): number => (ms === 0 ? 0 : Math.max(1, Math.round((ms / scaleMs) * width)));
  return bars.map(({ minMs, maxMs, sampleMs }) => {
    const bar = [...'█'.repeat(cells(minMs)), ...'░'.repeat(Math.max(0, cells(maxMs) - cells(minMs)))];
    if (minMs !== maxMs) bar[Math.max(0, cells(sampleMs) - 1)] = '●';
    return bar.join('');
  });
}

const COLUMNS = [...'▁▂▃▄▅▆▇█'];

/** A column for each value, on one linear scale; nothing for 0. */
export function plotColumns(values: readonly number[]): string {
  const most = Math.max(1, ...values);
  return values.map((value) => (value === 0 ? ' ' : COLUMNS[Math.min(7, Math.floor((value / most) * 8))])).join('');
}
