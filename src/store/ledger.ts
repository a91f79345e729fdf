import type { DeadReason, Decision } from '../retry/decision.ts';
import type { OutcomeKind, StoredError } from '../retry/outcome.ts';
import type { RetryPolicy } from '../retry/policy.ts';

/*
 * The ledger of many jobs, for statistics: those that have ended, completed or dead, each with its runs. A large ledger is
 * not read as a whole; a part of it is drawn, so that the cost of a call depends on `limit` and not on the ledger.
 */

export interface LedgerRequest {
  /** Only jobs that ended at this time or later. */
  readonly since: number;
  readonly name?: string;
  /** How many jobs are looked at, at most; with `draw` about. Those that `since` or `name` leave out count, too. */
  readonly limit: number;
  /** Continue after the page that answered this as `next`. */
  readonly after?: string;
  /**
   * Draws a part of all ended jobs instead of reading them in order, each as likely as any other. Another number draws another
   * part, independent of the first.
   */
  readonly draw?: number;
  /** With `draw`: only jobs that ended at this time or before are drawn, so that what ends meanwhile does not count as looked at. */
  readonly until?: number;
}

export interface LedgerPage {
  /** Store time of this answer. */
  readonly now: number;
  readonly jobs: readonly LedgerJob[];
  /** How many jobs were looked at: also those that `since` or `name` left out. */
  readonly looked: number;
  readonly policies: readonly RetryPolicy[];
  /** One error of each fingerprint that `jobs` have, without its stack. */
  readonly errors: Readonly<Record<string, StoredError>>;
  /** Null when no page follows, and always with `draw`. */
  readonly next: string | null;
}

export interface LedgerJob {
  readonly id: string;
  readonly name: string;
  readonly state: 'completed' | 'dead';
  readonly deadReason: DeadReason | null;
  readonly resource: string | null;
  readonly finishedAt: number;
  /** Where in `policies` its policy is. */
  readonly policy: number;
  /** Jobs of the same part lay together and were drawn together; null where nothing was drawn. */
  readonly part: number | null;
  /** Oldest first. */
  readonly runs: readonly LedgerRun[];
}

export interface LedgerRun {
  readonly run: number;
  readonly attempt: number;
  readonly outcome: OutcomeKind;
  readonly counted: boolean;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly decision: Decision;
  /** Of its error; null when it has none, or one that an older version stored. */
  readonly fingerprint: string | null;
}

/** Completed jobs come before dead ones. */
export const ledgerStates = ['completed', 'dead'] as const;
export type LedgerState = (typeof ledgerStates)[number];

/** Where a page ended: in a state, by the time of the end, then by the order of acceptance. */
export interface LedgerPosition {
  readonly state: LedgerState;
  readonly finishedAt: number;
  readonly accepted: number;
}

export function formatPosition({ state, finishedAt, accepted }: LedgerPosition): string {
  return `${state}:${finishedAt}:${accepted}`;
}

/** Where a page begins; null when the text is no position: such a page is empty. */
export function positionAfter({ since, after }: LedgerRequest): LedgerPosition | null {
  if (after === undefined) return { state: 'completed', finishedAt: since, accepted: -1 };
  const [, state, finishedAt, accepted] = /^(completed|dead):(-?\d{1,16}):(-?\d{1,16})$/.exec(after) ?? [];
  if (state === undefined) return null;
  return { state: state as LedgerState, finishedAt: Number(finishedAt), accepted: Number(accepted) };
}

/** What follows a page of one state: the rest of it when the page was full, else the next state, else nothing. */
export function nextPosition(
  { since, limit }: LedgerRequest,
  state: LedgerState,
  looked: number,
  last: Omit<LedgerPosition, 'state'> | undefined,
): string | null {
  if (last !== undefined && looked === limit) return formatPosition({ state, ...last });
  return state === 'completed' ? formatPosition({ state: 'dead', finishedAt: since, accepted: -1 }) : null;
}

/** How many jobs that were accepted one after the other are drawn together, where a store has no pages of its own. */
export const DRAWN_TOGETHER = 16;
const GOLDEN = 0.618_033_988_749_895;

/**
 * Which parts of a row of `count` parts a number draws. Multiples of the golden ratio spread evenly over any range, so that
 * two draws hardly ever take the same part, and none needs a random number.
 */
export function drawParts(draw: number, parts: number, count: number): number[] {
  if (parts >= count) return Array.from({ length: count }, (_, part) => part);
  const drawn = new Set<number>();
  for (let index = 0; index < parts; index++) {
    const at = ((draw * parts + index) * GOLDEN) % 1;
    drawn.add(Math.floor(at * count));
  }
  return [...drawn];
}

/** The policies of a page, each once. */
export class PolicyList {
  readonly policies: RetryPolicy[] = [];
  readonly #byText: Map<string, number> = new Map();
  /** Jobs of one type share their policy as an object. */
  readonly #byObject: Map<RetryPolicy, number> = new Map();

  indexOf(policy: RetryPolicy): number {
    const known = this.#byObject.get(policy);
    if (known !== undefined) return known;
    const text = JSON.stringify(policy);
    const index = this.#byText.get(text) ?? this.policies.push(policy) - 1;
    this.#byText.set(text, index);
    this.#byObject.set(policy, index);
    return index;
  }
}
