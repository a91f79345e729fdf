import { finishedStates } from '../job.ts';
import type { RetentionRule, RetentionWrite } from './store.ts';

/*
 * How long finished jobs are kept. The rules are stored: per state, for one job name or for all names that have none of their
 * own; from code, or set by hand. So what a process deletes does not depend on how it was started.
 *
 * A rule from code only ever becomes longer, so that of two deploys that differ the longer one holds, whichever opens last.
 * What is deleted does not come back, so shortening takes an order, and that holds until it is taken back.
 */

export type FinishedState = (typeof finishedStates)[number];

const DAY_MS = 24 * 60 * 60_000;
/** Without any rule. */
export const DEFAULT_KEPT_MS: Readonly<Record<FinishedState, number>> = {
  completed: DAY_MS,
  dead: 90 * DAY_MS,
  cancelled: 7 * DAY_MS,
};

/** The longer of two; null is for ever. */
export function longer(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : Math.max(a, b);
}

/** The stored rules after a write. A store that has a database says the same in SQL. */
export function rulesAfter(rules: readonly RetentionRule[], write: RetentionWrite): RetentionRule[] {
  const isSame = ({ name, state, source }: RetentionRule): boolean =>
    name === write.name && state === write.state && source === write.source;
  const others = rules.filter((rule) => !isSame(rule));
  if (write.keptMs === undefined) return others;
  const before = rules.find(isSame);
  const keptMs = before === undefined || write.source === 'set' ? write.keptMs : longer(before.keptMs, write.keptMs);
  return [...others, { ...write, keptMs }];
}

/** How long jobs of a name are kept; of all names without a rule of their own when it is null. */
export function keptMs(rules: readonly RetentionRule[], name: string | null, state: FinishedState): number | null {
  const said = (of: string | null, source: RetentionRule['source']): RetentionRule | undefined =>
    rules.find((rule) => rule.name === of && rule.state === state && rule.source === source);
  const own = name === null ? undefined : (said(name, 'set') ?? said(name, 'code'));
  const rule = own ?? said(null, 'set') ?? said(null, 'code');
  return rule === undefined ? DEFAULT_KEPT_MS[state] : rule.keptMs;
}

/** Finished jobs that are kept for the same time, and so are deleted in the order they ended. */
export interface PruneStep {
  readonly state: FinishedState;
  readonly keptMs: number;
  /** The names of these jobs, or of all others. */
  readonly names: readonly string[];
  readonly isOthers: boolean;
  /** Some jobs of this state are kept for longer, so that they lie among those that are deleted. */
  readonly skips: boolean;
}

export function pruneSteps(rules: readonly RetentionRule[]): PruneStep[] {
  return finishedStates.flatMap((state) => {
    const others = keptMs(rules, null, state);
    const names = new Set(rules.flatMap(({ name, state: of }) => (name === null || of !== state ? [] : [name])));
    const apart = new Map<number | null, string[]>();
    for (const name of [...names].sort()) {
      const own = keptMs(rules, name, state);
      if (own !== others) apart.set(own, [...(apart.get(own) ?? []), name]);
    }
    const longest = [others, ...apart.keys()].reduce(longer);
    const step = (ms: number, of: readonly string[], isOthers: boolean): PruneStep => ({
      state,
      keptMs: ms,
      names: of,
      isOthers,
      skips: ms !== longest,
    });
    return [
      ...(others === null ? [] : [step(others, [...apart.values()].flat(), true)]),
      ...[...apart].flatMap(([ms, of]) => (ms === null ? [] : [step(ms, of, false)])),
    ];
  });
}

/** So many finished jobs are looked at in one call. */
export const LOOKED_AT = 5_000;
/** How often to begin at the oldest job again; less often when that takes long. */
const FULL_LOOK_MS = 1_000;
/** At most this part of the time is spent on it. */
const LARGEST_PART = 0.05;

interface Cursor<Place> {
  place: Place;
  /** When it began at the oldest job. */
  readonly since: number;
  /** When to begin there again; null while it has not come to the end. */
  nextAt: number | null;
}

/**
 * How far each step has come. Jobs that are kept for longer lie between those that are deleted (and in PostgreSQL deleted ones
 * stay in the index until they are vacuumed), so a look goes on where the last one ended. A job may be committed late, so
 * now and then it begins at the start, and at once when the rules have changed.
 */
export class PruneCursors<Place> {
  readonly #start: Place;
  readonly #cursors: Map<string, Cursor<Place>> = new Map();

  constructor(start: Place) {
    this.#start = start;
  }

  /** After which place to look. */
  place(step: PruneStep, now: number): Place {
    const key = JSON.stringify(step);
    const known = this.#cursors.get(key);
    if (known !== undefined && (known.nextAt === null || now < known.nextAt)) return known.place;
    this.#cursors.set(key, { place: this.#start, since: now, nextAt: null });
    return this.#start;
  }

  /** `hasMore` when there may be more behind this place now. */
  reached(step: PruneStep, place: Place, hasMore: boolean, now: number): void {
    const cursor = this.#cursors.get(JSON.stringify(step)) as Cursor<Place>;
    cursor.place = place;
    if (!hasMore) cursor.nextAt ??= now + Math.max(FULL_LOOK_MS, (now - cursor.since) / LARGEST_PART);
  }

  /** Forgets the steps of rules that do not hold any more. */
  keep(steps: readonly PruneStep[]): void {
    const keys = new Set(steps.map((step) => JSON.stringify(step)));
    for (const key of this.#cursors.keys()) if (!keys.has(key)) this.#cursors.delete(key);
  }
}
