import { checkList, checkOneOf } from '../config.ts';

/** Stable: definitions and options silence warnings by these. */
export const warningNames = [
  'short-window',
  'no-jitter',
  'timeout-beyond-lease',
  'timeout-beyond-deadline',
  'attempts-beyond-deadline',
  'concurrency-above-total',
  'rate-beyond-deadline',
] as const;
export type WarningName = (typeof warningNames)[number];

/** The names of warnings that an option `silence` lists. */
export function checkSilence(value: unknown, what: string): readonly WarningName[] {
  return checkList(value, what, 'a list of names of warnings', (name, index) =>
    checkOneOf(name, warningNames, `${what}[${index}]`),
  );
}
