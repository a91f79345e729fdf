import { unexpected } from '../config.ts';

/** `'50/s'`, `'300/m'` or `'1000/h'`: how many jobs fall due per second, minute or hour. */
export type Rate = `${number}/${'s' | 'm' | 'h'}`;

const perMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** The time between two jobs, in ms; 0 without a rate. */
export function readInterval(rate: unknown, what: string): number {
  if (rate === undefined) return 0;
  const [, amount, unit] = (typeof rate === 'string' && /^(\d+(?:\.\d+)?)\/(s|m|h)$/.exec(rate)) || [];
  if (Number(amount) > 0) return (perMs[unit as string] as number) / Number(amount);
  throw unexpected(what, "a rate above 0 such as '50/s', '300/m' or '1000/h'", rate);
}
