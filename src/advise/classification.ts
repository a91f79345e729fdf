import type { StoredError } from '../retry/outcome.ts';
import { type ClassifyRule, defaultRules, matchRules } from '../retry/rules.ts';
import { CRASH, type Life, UNKNOWN } from './lives.ts';
import { type Evidence, evidenceOf } from './tally.ts';

/** An error that was retried, and after which no job ever completed. */
export interface NeverRecovers {
  readonly group: string;
  /** Of the jobs that were retried after it. */
  readonly evidence: Evidence;
  /** Matches this error and no other group of the job that recovers; null when none does. */
  readonly rule: ClassifyRule | null;
}

export type Errors = Readonly<Record<string, StoredError>>;

/**
 * Groups to call permanent, where the evidence is enough. Errors of the environment are not among them, however long an outage was: the dependency comes
 * back one day, and a gate waits for that at no attempt.
 */
export function neverRecovering(lives: readonly Life[], errors: Errors): NeverRecovers[] {
  const byGroup = new Map<string, Life[]>();
  for (const life of lives) {
    for (const group of new Set(life.runs.flatMap((run) => run.group ?? []))) {
      const own = byGroup.get(group);
      if (own === undefined) byGroup.set(group, [life]);
      else own.push(life);
    }
  }
  const recovering = [...byGroup].filter(([, own]) => own.some(({ completed }) => completed)).map(([group]) => group);
  return [...byGroup].flatMap(([group, own]): NeverRecovers[] => {
    if (group === CRASH || group === UNKNOWN || recovering.includes(group) || isEnvironment(errors[group])) return [];
    const retried = own.filter(({ runs }) => runs.some(({ after }) => after === group));
    if (retried.length === 0) return [];
    const others = recovering.flatMap((one) => errors[one] ?? []);
    return [{ group, evidence: evidenceOf(retried), rule: ruleFor(errors[group], others) }];
  });
}

export function isEnvironment(error: StoredError | undefined): boolean {
  return error !== undefined && matchRules(error, defaultRules)?.class === 'environment';
}

/** By what tells it from the errors that recover: its code, its name, its status, or name and code. */
function ruleFor(error: StoredError | undefined, recovering: readonly StoredError[]): ClassifyRule | null {
  if (error === undefined) return null;
  const { name, code, status } = error;
  const candidates: ClassifyRule[] = [
    ...(code === null ? [] : [{ code, class: 'permanent' } as const]),
    ...(name === 'Error' ? [] : [{ name, class: 'permanent' } as const]),
    ...(status === null ? [] : [{ status, class: 'permanent' } as const]),
    ...(code === null || name === 'Error' ? [] : [{ name, code, class: 'permanent' } as const]),
  ];
  return candidates.find((rule) => recovering.every((other) => matchRules(other, [rule]) === null)) ?? null;
}
