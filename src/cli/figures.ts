import type { Counted } from '../store/store.ts';

/* Numbers for people. */

export function percent(share: number): string {
  return `${(share * 100).toFixed(1).replace(/\.0$/, '')} %`;
}

/** 1,000. */
export function grouped(value: number): string {
  return value.toLocaleString('en');
}

/** `1,000+` for at least 1,000. */
export function countText({ count, isExact }: Counted): string {
  return `${grouped(count)}${isExact ? '' : '+'}`;
}
