import type { Rate } from './limit.ts';
import { afterStarts, startsAt, startsNow } from './rate.ts';

/** The key's `nextStartAt` afterwards when `cost` starts are granted; else when to ask again. */
export type Permitted = { readonly nextStartAt: number } | { readonly askAt: number };

export function permitted(rate: Rate, nextStartAt: number, now: number, cost: number): Permitted {
  if (startsNow(rate, nextStartAt, now) >= cost) return { nextStartAt: afterStarts(rate, nextStartAt, now, cost) };
  const missing = afterStarts(rate, nextStartAt, now, cost - 1);
  return { askAt: Math.max(now + 1, startsAt(rate, missing)) };
}
