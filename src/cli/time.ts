import { span } from '../duration.ts';

export { span } from '../duration.ts';

const SECOND_MS = 1_000;

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
