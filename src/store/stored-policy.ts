import type { RetryPolicy } from '../retry/policy.ts';
import { defaultPolicy } from '../retry/resolve.ts';
import { parseFrozen } from './json.ts';

/*
 * What the jobs of one definition share, as one text that is stored once: the policy, and in it the version of the
 * definition, if that carries one. An older version of Mulligan reads the policy from it and ignores the version.
 */

export interface StoredPolicy {
  readonly policy: RetryPolicy;
  readonly version: number | null;
}

export function formatPolicy(policy: RetryPolicy, version: number | undefined): string {
  return JSON.stringify(version === undefined ? policy : { ...policy, version });
}

export function parsePolicy(text: string): StoredPolicy {
  const { version = null, ...policy } = parseFrozen<WrittenPolicy>(text);
  const maxRuns = policy.maxRuns ?? Math.max(defaultPolicy.maxRuns, policy.maxAttempts);
  return { policy: Object.freeze({ ...policy, maxRuns }), version };
}

/** As a version of Mulligan wrote it that may not have known all of its fields. */
type WrittenPolicy = Omit<RetryPolicy, 'maxRuns'> & { readonly maxRuns?: number; readonly version?: number };
