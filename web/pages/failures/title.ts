import type { ErrorGroup } from '../../client/answers.ts';
import { short } from '../../components/format.ts';

/** What kind of error it is: `TypeError (ECONNREFUSED)`. */
export function errorTitle({ sample, fingerprint }: ErrorGroup): string {
  if (sample === null) return fingerprint;
  const { name, code, status } = sample.error;
  const details = [status === null ? null : `HTTP ${status}`, code].filter((detail) => detail !== null);
  return short(details.length === 0 ? name : `${name} (${details.join(', ')})`, 120);
}
