import type { ErrorGroup } from '../../src/store/error-groups.ts';
import type { Settlement } from '../../src/store/store.ts';
import type { FinalState } from '../history.ts';
import type { Check } from './checker.ts';
import type { ModelJob } from './model.ts';

/* Guarantee 14: error groups agree with a recount. */

const GUARANTEE = 14;

const totals = ['failures', 'jobs', 'recovered', 'redriven', 'recurred'] as const;
type Totals = Record<(typeof totals)[number], number>;

/** What the history says of error groups, beside what can be counted at the end. */
export class ErrorGroupModel {
  readonly #totals: Map<string, Totals> = new Map();
  /** Of the last failure of each job. */
  readonly #fingerprints: Map<string, string> = new Map();

  /** A settlement that was accepted, before the model's job changes. */
  settled(job: ModelJob, { outcome, error, decision }: Settlement): void {
    const { id } = job.made;
    const before = this.#fingerprints.get(id);
    const failure = outcome === 'cancelled' ? undefined : error?.fingerprint;
    if (failure !== undefined) {
      const group = this.#of(failure);
      group.failures++;
      if (failure !== before) group.jobs++;
      else if (job.lane === 'redrive') group.recurred++;
      this.#fingerprints.set(id, failure);
    }
    if (decision.kind === 'complete' && before !== undefined) this.#of(before).recovered++;
  }

  redriven(id: string): void {
    const fingerprint = this.#fingerprints.get(id);
    if (fingerprint !== undefined) this.#of(fingerprint).redriven++;
  }

  check(groups: readonly ErrorGroup[], expect: Check['expect']): void {
    const told = new Map(groups.map((group) => [group.fingerprint, group]));
    for (const [fingerprint, known] of this.#totals) {
      for (const total of totals) {
        const found = told.get(fingerprint)?.[total] ?? 0;
        expect(
          GUARANTEE,
          found === known[total],
          () => `error group ${fingerprint} says ${total} ${found}, but the history says ${known[total]}`,
        );
      }
    }
    for (const { fingerprint } of groups) {
      expect(
        GUARANTEE,
        this.#totals.has(fingerprint),
        () => `no job failed with ${fingerprint}, but it has an error group`,
      );
    }
  }

  #of(fingerprint: string): Totals {
    const known = this.#totals.get(fingerprint) ?? { failures: 0, jobs: 0, recovered: 0, redriven: 0, recurred: 0 };
    this.#totals.set(fingerprint, known);
    return known;
  }
}

/** A group's failing and dead jobs are those that are there. */
export function checkGroupSizes({ jobs, errorGroups }: FinalState, expect: Check['expect']): void {
  const counted = new Map<string, { failing: number; dead: number }>();
  for (const { state, lastError } of jobs) {
    if (lastError?.fingerprint === undefined || state === 'completed' || state === 'cancelled') continue;
    const count = counted.get(lastError.fingerprint) ?? { failing: 0, dead: 0 };
    count[state === 'dead' ? 'dead' : 'failing']++;
    counted.set(lastError.fingerprint, count);
  }
  const told = new Map(errorGroups.map((group) => [group.fingerprint, group]));
  for (const fingerprint of new Set([...counted.keys(), ...told.keys()])) {
    const right = counted.get(fingerprint) ?? { failing: 0, dead: 0 };
    const { failing, dead } = told.get(fingerprint) ?? { failing: 0, dead: 0 };
    expect(
      GUARANTEE,
      failing === right.failing && dead === right.dead,
      () =>
        `error group ${fingerprint} says ${failing} failing and ${dead} dead, but there are ${right.failing} and ${right.dead}`,
    );
  }
}
