import { formatDuration, parseDuration } from '../../../src/duration.ts';
import { backoffDelay, LONGEST_DELAY_MS } from '../../../src/retry/backoff.ts';
import { delayBefore } from '../../../src/retry/jitter.ts';
import { validateRetryOptions } from '../../../src/retry/options.ts';
import type { Backoff, BackoffOptions, Jitter, RetryOptions, RetryPolicy } from '../../../src/retry/policy.ts';
import { policies } from '../../../src/retry/presets.ts';

/* What the lab edits, and what follows of it. The delays are made by the functions that workers use. */

export interface Draft {
  readonly maxAttempts: number;
  readonly kind: 'exponential' | 'linear' | 'fixed' | 'fibonacci';
  readonly baseMs: number;
  readonly factor: number;
  readonly maxMs: number;
  readonly jitter: 'none' | 'full' | 'equal' | 'decorrelated' | 'spread';
}

export interface Wait {
  /** The attempt after which it is waited. */
  readonly attempt: number;
  readonly shortestMs: number;
  readonly wholeMs: number;
  readonly longestMs: number;
}

const SPREAD = 0.2;
/** So many waits are drawn and shown; a policy may have more. */
export const MOST_WAITS = 50;
const DRAWS = 400;

export function policyOf(draft: Draft): Pick<RetryPolicy, 'backoff' | 'jitter' | 'maxAttempts'> {
  const { maxAttempts, kind, baseMs, factor, maxMs, jitter } = draft;
  const backoffs: Readonly<Record<Draft['kind'], Backoff>> = {
    exponential: { kind: 'exponential', baseMs, factor, maxMs },
    linear: { kind: 'linear', baseMs, maxMs },
    fibonacci: { kind: 'fibonacci', baseMs, maxMs },
    fixed: { kind: 'fixed', baseMs },
  };
  return { maxAttempts, backoff: backoffs[kind], jitter: jitterOf(jitter) };
}

function jitterOf(jitter: Draft['jitter']): Jitter {
  return jitter === 'spread' ? { spread: SPREAD } : jitter;
}

/** The bands are what the least and the greatest random number give, one wait after the other. */
export function waitsOf(draft: Draft): Wait[] {
  const policy = policyOf(draft);
  const waits: Wait[] = [];
  let [shortest, longest]: (number | null)[] = [null, null];
  for (let attempt = 1; attempt < Math.min(draft.maxAttempts, MOST_WAITS + 1); attempt++) {
    shortest = delayBefore(policy, attempt, shortest ?? null, () => 0);
    longest = delayBefore(policy, attempt, longest ?? null, () => 1 - Number.EPSILON);
    waits.push({ attempt, shortestMs: shortest, wholeMs: backoffDelay(policy.backoff, attempt), longestMs: longest });
  }
  return waits;
}

/** How long a job that always fails is kept trying: the median of many, with always the same random numbers. */
export function medianTotal(draft: Draft): number {
  const policy = policyOf(draft);
  const random = seeded();
  const totals = Array.from({ length: DRAWS }, () => {
    let [total, previous]: [number, number | null] = [0, null];
    for (let attempt = 1; attempt < Math.min(draft.maxAttempts, MOST_WAITS + 1); attempt++) {
      previous = delayBefore(policy, attempt, previous, random);
      total += previous;
    }
    return total;
  });
  return totals.sort((a, b) => a - b)[DRAWS / 2] as number;
}

/** mulberry32: small, and the same in every browser. */
function seeded(): () => number {
  let state = 1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Throws what code with these options would throw. */
export function checkDraft(draft: Draft): Draft {
  validateRetryOptions(optionsOf(draft), 'retry');
  return draft;
}

/** The draft as a definition takes it. */
export function optionsOf({ maxAttempts, kind, baseMs, factor, maxMs, jitter }: Draft): RetryOptions {
  const backoffs: Readonly<Record<Draft['kind'], BackoffOptions>> = {
    exponential: { kind: 'exponential', base: baseMs, factor, max: maxMs },
    linear: { kind: 'linear', base: baseMs, max: maxMs },
    fibonacci: { kind: 'fibonacci', base: baseMs, max: maxMs },
    fixed: { kind: 'fixed', base: baseMs },
  };
  return { maxAttempts, backoff: backoffs[kind], jitter: jitterOf(jitter) };
}

export function codeOf(draft: Draft): string {
  const { maxAttempts, kind, baseMs, factor, maxMs, jitter } = draft;
  const most = kind === 'fixed' || maxMs >= LONGEST_DELAY_MS ? '' : `, max: '${formatDuration(maxMs)}'`;
  const times = kind === 'exponential' ? `, factor: ${factor}` : '';
  const chance = jitter === 'spread' ? `{ spread: ${SPREAD} }` : `'${jitter}'`;
  return `retry: {
  maxAttempts: ${maxAttempts},
  backoff: { kind: '${kind}', base: '${formatDuration(baseMs)}'${times}${most} },
  jitter: ${chance},
},`;
}

/** The presets that the lab can edit. */
export const presets: readonly (readonly [name: string, draft: Draft])[] = Object.entries(policies).flatMap(
  ([name, preset]) => {
    const { maxAttempts = 1, backoff, jitter = 'full' } = preset;
    if (backoff === undefined || backoff.kind === 'table') return [];
    const draft: Draft = {
      maxAttempts,
      kind: backoff.kind,
      baseMs: parseDuration(backoff.base, name),
      factor: 'factor' in backoff ? (backoff.factor ?? 2) : 2,
      maxMs: 'max' in backoff && backoff.max !== undefined ? parseDuration(backoff.max, name) : LONGEST_DELAY_MS,
      jitter: typeof jitter === 'string' ? jitter : 'spread',
    };
    return [[name, draft] as const];
  },
);
