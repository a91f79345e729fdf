const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

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

/** A point in time seen from now: what tables show. */
export function fromNow(at: number, now: number): string {
  const ms = at - now;
  if (Math.abs(ms) < SECOND_MS) return 'now';
  return ms > 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}

/** A point in time in full, and seen from now: what the facts about one job show. */
export function pointInTime(at: number, now: number): string {
  return `${iso(at)} (${fromNow(at, now)})`;
}

export function iso(at: number): string {
  return Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : String(at);
}
