import type { AnyJobDefinition } from '../../definition.ts';
import { checkPolicy, type PolicyWarning } from '../../policy-check/check.ts';
import type { RetryPolicy } from '../../retry/policy.ts';
import { planWork } from '../../worker/options.ts';
import { readDuration, readInteger } from '../flags.ts';

export interface WorkerFlags {
  readonly concurrency?: string;
  readonly lease?: string;
}

/** A preset alone: its jobs have a soft gate, no timeout and no limits. */
const preset = { resource: null, timeoutMs: null, limits: [], backoff: undefined };

export function warningsOf(
  policy: RetryPolicy,
  definition: AnyJobDefinition | null,
  { concurrency, lease }: WorkerFlags,
): PolicyWarning[] {
  const usual = planWork({});
  const settings = {
    policy,
    job: definition ?? preset,
    places: concurrency === undefined ? usual.concurrency : readInteger(concurrency, '--concurrency', { min: 1 }),
    leaseMs: lease === undefined ? usual.leaseMs : readDuration(lease, '--lease'),
  };
  return checkPolicy(settings, definition?.silence);
}

export function warningLines(warnings: readonly PolicyWarning[]): string[] {
  if (warnings.length === 0) return [];
  const lines = warnings.map(({ name, problem, advice }) => `  - ${name}: ${problem} ${advice}`);
  return ['', warnings.length === 1 ? 'Warning' : 'Warnings', ...lines];
}
