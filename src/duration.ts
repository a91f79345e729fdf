import { unexpected } from './config.ts';

/** `'500ms'`, `'30s'`, `'5m'`, `'2h'`, `'3d'`, `'1w'`, or a number of milliseconds. */
export type Duration = number | `${number}${Unit}`;
type Unit = 'ms' | 's' | 'm' | 'h' | 'd' | 'w';

const SECOND_MS = 1_000;
export const MINUTE_MS: number = 60 * SECOND_MS;
export const HOUR_MS: number = 60 * MINUTE_MS;
export const DAY_MS: number = 24 * HOUR_MS;

const unitMs: Readonly<Record<Unit, number>> = {
  ms: 1,
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
};

/** A duration as text, for those that describe what they take: as a regular expression, and in words. */
export const DURATION_PATTERN: string = `\\d+(\\.\\d+)?(${Object.keys(unitMs).join('|')})`;
const EXPECTED_TEXT = "a duration such as '500ms', '30s', '5m', '2h', '3d' or '1w'";
export const EXPECTED_DURATION: string = `${EXPECTED_TEXT}, or a number of milliseconds`;
const pattern = /^(\d+(?:\.\d+)?)([a-z]+)$/i;

/** Milliseconds, rounded to whole ones. `what` names the option in the message of the ConfigError. */
export function parseDuration(value: unknown, what: string): number {
  const exactMs = typeof value === 'string' ? parseText(value, what) : typeof value === 'number' ? value : NaN;
  const ms = Math.round(exactMs);
  if (!Number.isSafeInteger(ms) || exactMs < 0) {
    // Text is never a number of milliseconds, so '10' must not read as if it were one.
    throw unexpected(what, typeof value === 'string' ? EXPECTED_TEXT : EXPECTED_DURATION, value, advice(value));
  }
  return Math.abs(ms); // -0 is 0
}

function parseText(text: string, what: string): number {
  const [, amount, unit] = pattern.exec(text) ?? [];
  if (amount === undefined || unit === undefined) return NaN;
  if (!Object.hasOwn(unitMs, unit))
    throw unexpected(what, EXPECTED_TEXT, text, `There is no unit ${unit.slice(0, 20)}.`);
  return Number(amount) * unitMs[unit as Unit];
}

function advice(value: unknown): string | undefined {
  if (typeof value === 'string' && /^\d+(\.\d+)?$/.test(value)) {
    const amount = value.slice(0, 20);
    return `Add a unit, such as ${amount}s or ${amount}ms.`;
  }
  if (typeof value === 'number' && value < 0) return 'A duration cannot be negative.';
  return undefined;
}

/** The largest unit that needs no more than one short decimal wins, so that the text stays exact. */
const shown: readonly { readonly unit: Unit; readonly sizeMs: number; readonly stepMs: number }[] = [
  { unit: 'd', sizeMs: DAY_MS, stepMs: DAY_MS / 2 },
  { unit: 'h', sizeMs: HOUR_MS, stepMs: HOUR_MS / 2 },
  { unit: 'm', sizeMs: MINUTE_MS, stepMs: MINUTE_MS / 2 },
  { unit: 's', sizeMs: SECOND_MS, stepMs: SECOND_MS / 10 },
];

/** Compact and exact: `parseDuration` reads it back as the same number. */
export function formatDuration(ms: number): string {
  const fit = shown.find(({ sizeMs, stepMs }) => ms >= sizeMs && ms % stepMs === 0);
  return fit === undefined ? `${ms}ms` : `${ms / fit.sizeMs}${fit.unit}`;
}

/** A span for people: rounded to what matters, where `formatDuration` is exact. */
export function span(ms: number): string {
  const whole = Math.round(ms);
  if (whole < SECOND_MS) return `${whole}ms`;
  // 59,960 ms would round to 60.0 s, which is a minute.
  if (whole < MINUTE_MS - 50) return `${trimmed(whole / SECOND_MS)}s`;
  const seconds = Math.round(whole / SECOND_MS) * SECOND_MS;
  if (seconds < HOUR_MS) return two(seconds, MINUTE_MS, 'm', SECOND_MS, 's');
  const minutes = Math.round(whole / MINUTE_MS) * MINUTE_MS;
  if (minutes < DAY_MS) return two(minutes, HOUR_MS, 'h', MINUTE_MS, 'm');
  return two(Math.round(whole / HOUR_MS) * HOUR_MS, DAY_MS, 'd', HOUR_MS, 'h');
}

function trimmed(value: number): string {
  return value.toFixed(1).replace(/\.0$/, '');
}

function two(ms: number, largeMs: number, large: string, smallMs: number, small: string): string {
  const rest = Math.round((ms % largeMs) / smallMs);
  return `${Math.floor(ms / largeMs)}${large}${rest === 0 ? '' : ` ${rest}${small}`}`;
}
