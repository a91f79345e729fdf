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

/** The `standard` preset gives what it names; a preset has no deadline and leaves crashes alone. */
export const defaultPolicy: RetryPolicy = {
  ...(validateRetryOptions(policies.standard, 'policies.standard') as RetryPolicy),
  deadlineMs: null,
  maxCrashes: 3,
};

/** Field by field: the job's own, else the definition's, else the queue's, else the default. A backoff is one field. */
export function resolvePolicy({ job, definition, queue, hardCap }: PolicySources): ResolvedPolicy {
  const asked: RetryPolicy = {
    ...defaultPolicy,
    ...(queue === undefined ? {} : validateRetryOptions(queue, 'queue.retry')),
    ...(definition === undefined ? {} : validateRetryOptions(definition, 'definition.retry')),
    ...(job === undefined ? {} : validateRetryOptions(job, 'retry')),
  };
  if (hardCap === undefined) return { policy: asked, capped: null };
  checkInteger(hardCap, 'hardCap', { min: 1, hint: 'Leave it out for no cap.' });
  if (asked.maxAttempts <= hardCap) return { policy: asked, capped: null };
  return { policy: { ...asked, maxAttempts: hardCap }, capped: { asked: asked.maxAttempts, hardCap } };
}
