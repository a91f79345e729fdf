import type { Decision } from '../retry/decision.ts';
import type { StoredError } from '../retry/outcome.ts';
import type { ClaimedJob } from '../store/store.ts';
import { withFingerprint } from '../untrusted/stored-error.ts';

/* Errors of runs whose handler threw nothing. With them, every job that fails or dies belongs to an error group. */

function ownError(name: string, code: string, message: string): StoredError {
  return Object.freeze(withFingerprint({ name, message, code, status: null, stack: null }));
}

export const crashed: StoredError = ownError(
  'Crashed',
  'CRASHED',
  'the worker stopped renewing its lease: its process died, hung, or could not reach the store',
);

/** Why a job is dead whose run threw nothing; null when its last error says it. */
export function errorOfDeath(
  decision: Decision,
  { name, lastError }: Pick<ClaimedJob, 'name' | 'lastError'>,
): StoredError | null {
  if (decision.kind !== 'dead') return null;
  if (decision.reason === 'no-handler') return ownError('NoHandler', 'NO_HANDLER', `no worker knows the job "${name}"`);
  if (lastError?.fingerprint !== undefined) return null;
  return ownError('DeadWithoutError', decision.reason.toUpperCase(), `the job is dead: ${decision.reason}`);
}
