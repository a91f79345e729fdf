import { MINUTE_MS } from '../duration.ts';
import type { RetryOptions, RetryPolicy } from '../retry/policy.ts';
import type { Scenario, SimulatedPolicy } from '../simulate/index.ts';
import type { NameAdvice } from './advice.ts';
import type { LedgerOutage } from './outage.ts';

/* The outage of a ledger as a scenario, and the policies to try in it: the present one, and the one that was proposed. */

const BEFORE_MS: number = 2 * MINUTE_MS;
/** After the outage, at least and at most. */
const [LEAST_AFTER_MS, MOST_AFTER_MS] = [5 * MINUTE_MS, 30 * MINUTE_MS];
/** A simulation of more takes minutes. */
const LONGEST_MS: number = 120 * MINUTE_MS;
const MOST_JOBS = 30_000;
const LEAST_RATE = 0.01;

export function scenarioOf(name: string, outage: LedgerOutage): Scenario {
  const lastsMs = Math.min(outage.until - outage.from, LONGEST_MS);
  const durationMs = BEFORE_MS + lastsMs + Math.min(MOST_AFTER_MS, Math.max(LEAST_AFTER_MS, lastsMs));
  const rate = Math.min(outage.arrivalsPerSecond, MOST_JOBS / (durationMs / 1_000));
  const { answer, share, medianMs, p99Ms, errorShare, poisonShare } = outage;
  return {
    name: `outage of ${name}`,
    duration: durationMs,
    drain: '30m',
    arrivals: { kind: 'constant', rate: Math.max(LEAST_RATE, rounded(rate)) },
    dependency: {
      serviceTime: { kind: 'lognormal', median: Math.round(medianMs), p99: Math.round(Math.max(medianMs, p99Ms)) },
      ...(errorShare > 0 && { errors: { [answer]: Math.min(1, rounded(errorShare)) } }),
      outages: [{ from: BEFORE_MS, until: BEFORE_MS + lastsMs, answer, share: Math.min(1, rounded(share)) }],
    },
    ...(poisonShare > 0 && { poison: { share: Math.min(1, rounded(poisonShare)) } }),
  };
}

function rounded(value: number): number {
  return Number(value.toPrecision(3));
}

/** Null when nothing that a simulation knows of would change: it has no errors that could be classified otherwise. */
export function policiesToTry({ policy, proposals, outage }: NameAdvice): SimulatedPolicy[] | null {
  const proposed: RetryPolicy = {
    ...policy,
    maxAttempts: proposals.findLast(({ maxAttempts }) => maxAttempts !== undefined)?.maxAttempts ?? policy.maxAttempts,
    backoff: proposals.findLast(({ backoff }) => backoff !== undefined)?.backoff ?? policy.backoff,
  };
  if (outage === null) return null;
  const { gate } = outage;
  const isChanged = JSON.stringify(proposed) !== JSON.stringify(policy);
  const isGateProposed = proposals.some(({ setting }) => setting === 'resource');
  if (!isChanged && !isGateProposed) return null;
  return [
    { name: 'present', retry: optionsOf(policy), gate },
    ...(isChanged ? [{ name: triedAs.maxAttempts, retry: optionsOf(proposed), gate }] : []),
    ...(isGateProposed ? [{ name: triedAs.resource, retry: optionsOf(policy), gate: 'resource' as const }] : []),
  ];
}

/**
 * By which policy of the replay each setting is tried. A gate is tried by itself: together with it, attempts that are too few
 * for an outage would look harmless. A simulation does not know classes of errors.
 */
export const triedAs: Readonly<Record<'maxAttempts' | 'backoff', 'proposed'>> & {
  readonly resource: 'with a gate';
  readonly classification: null;
} = {
  maxAttempts: 'proposed',
  backoff: 'proposed',
  resource: 'with a gate',
  classification: null,
};

/** A policy as it would be written in a definition. */
function optionsOf({ maxAttempts, backoff, jitter, deadlineMs, maxCrashes, maxRuns }: RetryPolicy): RetryOptions {
  const written = ((): RetryOptions['backoff'] => {
    switch (backoff.kind) {
      case 'exponential':
        return { kind: 'exponential', base: backoff.baseMs, factor: backoff.factor, max: backoff.maxMs };
      case 'linear':
      case 'fibonacci':
        return { kind: backoff.kind, base: backoff.baseMs, max: backoff.maxMs };
      case 'fixed':
        return { kind: 'fixed', base: backoff.baseMs };
      case 'table':
        return { kind: 'table', delays: backoff.delaysMs };
    }
  })();
  return {
    maxAttempts,
    ...(written !== undefined && { backoff: written }),
    jitter,
    ...(deadlineMs !== null && { deadline: deadlineMs }),
    maxCrashes,
    maxRuns,
  };
}
