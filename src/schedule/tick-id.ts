import { sha256 } from '../bytes.ts';

/**
 * The id of the job of a tick, made of the schedule's name and the time of the tick: however often a tick is fired, it is
 * the same job. A UUIDv7 of that time, so that ids sort by it.
 */
export function tickId(schedule: string, tick: number): string {
  const time = Math.max(0, tick).toString(16).padStart(12, '0');
  const digest = sha256(`${tick}\n${schedule}`);
  const variant = ((Number.parseInt(digest.slice(3, 4), 16) & 0x3) | 0x8).toString(16);
  const rest = [`7${digest.slice(0, 3)}`, `${variant}${digest.slice(4, 7)}`, digest.slice(7, 19)];
  return `${time.slice(0, 8)}-${time.slice(8)}-${rest.join('-')}`;
}
