import { sha256 } from './bytes.ts';

/**
 * The id of a job that follows from something else: however often it is made, it is the same job. A UUIDv7 of that time, so that ids
 * sort by it.
 */
export function derivedId(at: number, text: string): string {
  const time = Math.max(0, at).toString(16).padStart(12, '0');
  const digest = sha256(`${at}\n${text}`);
  const variant = ((Number.parseInt(digest.slice(3, 4), 16) & 0x3) | 0x8).toString(16);
  const rest = [`7${digest.slice(0, 3)}`, `${variant}${digest.slice(4, 7)}`, digest.slice(7, 19)];
  return `${time.slice(0, 8)}-${time.slice(8)}-${rest.join('-')}`;
}
