/** How figures, spans and points in time are written. */

const grouped = new Intl.NumberFormat('en-GB');
const dateTime = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
const clockTime = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

export function number(value: number): string {
  return grouped.format(value);
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** From here on, a count is not shown exactly: it would cost the store more than it tells. */
export const COUNT_CAP = 1_000;

export function cappedCount(value: number, isExact: boolean): string {
  return isExact ? number(value) : `${number(value)}+`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

const units: readonly [ms: number, name: string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
];

/** `431 ms`, `1.5 s`, `2 min 5 s`, `3 d 4 h`. */
export function span(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) return `${whole} ms`;
  if (whole < 10_000) return `${Number((whole / 1_000).toFixed(1))} s`;
  const at = units.findIndex(([unit]) => whole >= unit);
  const [unit, name] = units[at] as [number, string];
  const next = units[at + 1];
  const first = Math.floor(whole / unit);
  const second = next === undefined ? 0 : Math.floor((whole - first * unit) / next[0]);
  return `${number(first)} ${name}${second === 0 || next === undefined ? '' : ` ${second} ${next[1]}`}`;
}

/** `in 5 s`, `3 min ago`. */
export function relative(at: number, now: number): string {
  const away = at - now;
  if (Math.abs(away) < 1_000) return 'now';
  return away > 0 ? `in ${span(away)}` : `${coarse(-away)} ago`;
}

/** Of the past, one unit is enough. */
function coarse(ms: number): string {
  const at = units.findIndex(([unit]) => ms >= unit);
  const [unit, name] = units[at] as [number, string];
  return `${number(Math.floor(ms / unit))} ${name}`;
}

export function moment(at: number): string {
  return dateTime.format(at);
}

export function clock(at: number): string {
  return clockTime.format(at);
}

export function short(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest).toWellFormed()}…`;
}
