import { MINUTE_MS } from '../../duration.ts';

/** From time and value to a place in the picture. */
export interface Scale {
  readonly x: (ms: number) => number;
  readonly y: (value: number) => number;
}

/** In ms, from a second to a day. */
const timeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400].map(
  (seconds) => seconds * 1_000,
);
const MOST_TICKS = 12;

export interface TimeAxis {
  readonly ticksMs: readonly number[];
  readonly unit: string;
  readonly label: (ms: number) => string;
}

/** In seconds, minutes or hours, by how long the whole is. */
export function timeAxis(untilMs: number): TimeAxis {
  const stepMs = timeSteps.find((step) => untilMs / step <= MOST_TICKS) ?? (timeSteps.at(-1) as number);
  const [unit, unitMs] =
    untilMs <= 2 * MINUTE_MS
      ? ['seconds', 1_000]
      : untilMs <= 180 * MINUTE_MS
        ? ['minutes', MINUTE_MS]
        : ['hours', 60 * MINUTE_MS];
  return {
    ticksMs: Array.from({ length: Math.floor(untilMs / stepMs) + 1 }, (_, index) => index * stepMs),
    unit: unit as string,
    label: (ms) => shortNumber(ms / (unitMs as number)),
  };
}

/** The next number of the kind 1, 2, 4, 6, 8, 10 times a power of ten: a half of it is round as well. */
export function niceTop(value: number): number {
  const least = Math.max(2, value);
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 4, 6, 8, 10].find((step) => step * power >= least) ?? 10) * power;
}

/** 950, 1.5k, 12k, 2M; without the digits that no axis needs. */
export function shortNumber(value: number): string {
  const [size, letter] = value >= 1e6 ? [1e6, 'M'] : value >= 1e4 ? [1e3, 'k'] : [1, ''];
  return `${Math.round((value / (size as number)) * 100) / 100}${letter}`;
}
