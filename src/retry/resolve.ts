import { checkInteger } from '../config.ts';
import { validateRetryOptions } from './options.ts';
import type { RetryOptions, RetryPolicy } from './policy.ts';
import { policies } from './presets.ts';

/** Where a policy comes from, the strongest source first. */
export interface PolicySources {
  readonly job?: RetryOptions | undefined;
  readonly definition?: RetryOptions | undefined;
  readonly queue?: RetryOptions | undefined;
  /** No job gets more attempts than this, whatever it asks for. */
  readonly hardCap?: number | undefined;
}

export interface ResolvedPolicy {
  readonly policy: RetryPolicy;
  /** Set when the hard cap took attempts away, so that it can be reported and not silently applied. */
  readonly capped: { readonly asked: number; readonly hardCap: number } | null;
}

/** At one run a minute, the longest wait behind a soft gate, a week's worth: no outage that ends takes as many. */
const MOST_RUNS = 10_000;

/** The `standard` preset gives what it names; a preset has no deadline and leaves crashes and runs alone. */
export const defaultPolicy: RetryPolicy = {
  ...(validateRetryOptions(policies.standard, 'policies.standard') as RetryPolicy),
  deadlineMs: null,
  maxCrashes: 3,
  maxRuns: MOST_RUNS,
};

/** Field by field: the job's own, else the definition's, else the queue's, else the default. A backoff is one field. */
export function resolvePolicy({ job, definition, queue, hardCap }: PolicySources): ResolvedPolicy {
  const asked: RetryPolicy = {
    ...defaultPolicy,
    ...(queue === undefined ? {} : validateRetryOptions(queue, 'queue.retry')),
    ...(definition === undefined ? {} : validateRetryOptions(definition, 'definition.retry')),
    ...(job === undefined ? {} : validateRetryOptions(job, 'retry')),
  };
  if (hardCap === undefined) return { policy: roomy(asked), capped: null };
  checkInteger(hardCap, 'hardCap', { min: 1, hint: 'Leave it out for no cap.' });
  if (asked.maxAttempts <= hardCap) return { policy: roomy(asked), capped: null };
  return { policy: roomy({ ...asked, maxAttempts: hardCap }), capped: { asked: asked.maxAttempts, hardCap } };
}

/** A policy of many attempts has as many runs. */
function roomy(policy: RetryPolicy): RetryPolicy {
  return { ...policy, maxRuns: Math.max(policy.maxRuns, policy.maxAttempts) };
}
