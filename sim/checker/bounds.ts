import type { RetryPolicy } from '../../src/retry/policy.ts';

/*
 * What a delay may be, worked out again from the documents and not from the code it checks.
 */
export interface Range {
  readonly least: number;
  readonly most: number;
}

const YEAR_MS = 365 * 24 * 3_600_000;

export function delayRange(policy: RetryPolicy, attempts: number, previousDelayMs: number | null): Range {
  const { base, plain, cap } = plainDelay(policy.backoff, attempts);
  if (policy.jitter === 'none') return { least: plain, most: plain };
  if (policy.jitter === 'full') return { least: 0, most: plain };
  if (policy.jitter === 'equal') return { least: Math.floor(plain / 2), most: plain };
  if (policy.jitter === 'decorrelated') {
    return { least: Math.min(base, cap), most: Math.min(cap, 3 * Math.max(base, previousDelayMs ?? base)) };
  }
  const { spread } = policy.jitter;
  return { least: Math.floor(plain * (1 - spread)), most: Math.min(cap, Math.ceil(plain * (1 + spread))) };
}

/** Behind a soft gate a run that is given back waits 2 s, doubling to a minute, with up to half of it added, or longer by its policy. */
export function softRange({ least, most }: Range, givenBack: number): Range {
  const soft = Math.min(60_000, 2_000 * 2 ** givenBack);
  return { least: Math.max(least, soft), most: Math.max(most, 1.5 * soft) };
}

function plainDelay(backoff: RetryPolicy['backoff'], n: number): { base: number; plain: number; cap: number } {
  switch (backoff.kind) {
    case 'exponential':
      return capped(backoff.baseMs, backoff.baseMs * backoff.factor ** (n - 1), backoff.maxMs);
    case 'linear':
      return capped(backoff.baseMs, backoff.baseMs * n, backoff.maxMs);
    case 'fibonacci':
      return capped(backoff.baseMs, backoff.baseMs * fibonacci(n), backoff.maxMs);
    case 'fixed':
      return { base: backoff.baseMs, plain: backoff.baseMs, cap: 3 * backoff.baseMs };
    case 'table': {
      const plain = backoff.delaysMs[Math.min(n, backoff.delaysMs.length) - 1] as number;
      return { base: plain, plain, cap: 3 * Math.max(...backoff.delaysMs) };
    }
  }
}

function capped(base: number, grown: number, max: number): { base: number; plain: number; cap: number } {
  const cap = Math.min(max, YEAR_MS);
  return { base, plain: Math.min(cap, grown), cap };
}

function fibonacci(n: number): number {
  let [a, b] = [1, 1];
  for (let i = 1; i < n; i++) [a, b] = [b, a + b];
  return a;
}
