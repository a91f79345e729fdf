import type { RetryPolicy } from '../retry/policy.ts';
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
  const stored = parseFrozen<RetryPolicy & { readonly version?: number }>(text);
  if (stored.version === undefined) return { policy: stored, version: null };
  const { version, ...policy } = stored;
  return { policy: Object.freeze(policy), version };
}
