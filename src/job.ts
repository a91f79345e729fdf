import { checkInteger } from './config.ts';
import type { Lane } from './lane.ts';
import type { LimitKey } from './limit/limit.ts';
import type { DeadReason, Decision } from './retry/decision.ts';
import type { OutcomeKind, StoredError } from './retry/outcome.ts';
import type { RetryPolicy } from './retry/policy.ts';

export { isRetry, type Lane, lanes } from './lane.ts';

/*
 * The states of a job. Attempts fail; jobs do not: there is no `failed` state.
 *
 *   enqueue -> scheduled | ready
 *   scheduled, retrying -> ready            when due (by time alone; nothing is written)
 *   ready -> running                        claim
 *   running -> completed | retrying | dead | cancelled, or back to ready | scheduled
 *   scheduled, ready, retrying -> cancelled
 *   dead -> ready | scheduled               redrive, at once or spread by a rate
 */
/** Append only: stores keep the position in this list. */
export const states = ['scheduled', 'ready', 'retrying', 'running', 'completed', 'dead', 'cancelled'] as const;
export type JobState = (typeof states)[number];

/** The one transition table. Stores and docs use it; no other place lists what may follow what. */
export const transitions = {
  scheduled: ['ready', 'cancelled'],
  ready: ['running', 'cancelled'],
  running: ['completed', 'retrying', 'dead', 'cancelled', 'ready', 'scheduled'],
  retrying: ['ready', 'cancelled'],
  completed: [],
  dead: ['ready', 'scheduled'],
  cancelled: [],
} as const;

export type Next<From extends JobState> = (typeof transitions)[From][number];

/** The states in which a job waits to be claimed. */
export const waitingStates = ['scheduled', 'ready', 'retrying'] as const;

/** The states in which a job has ended; each has a retention of its own. */
export const finishedStates = ['completed', 'dead', 'cancelled'] as const;

export function isTerminal(state: JobState): boolean {
  return (finishedStates as readonly JobState[]).includes(state);
}

/** Until when a job holds its key, as an enqueue may say: its first start, its end, or for as long as its row is kept. */
export const keyUntils = ['started', 'finished', 'pruned'] as const;
export type KeyUntil = (typeof keyUntils)[number];
/**
 * All lives of a key. With `window` it is held for a time from the job's acceptance, whatever becomes of the job. Append
 * only: stores keep the position in this list.
 */
export type KeyLife = KeyUntil | 'window';
export const keyLives: readonly KeyLife[] = [...keyUntils, 'window'];

export const LOWEST_PRIORITY = 9;
export const DEFAULT_PRIORITY = 5;

export function checkPriority(value: unknown, what: string): number {
  return checkInteger(value, what, { min: 0, max: LOWEST_PRIORITY, hint: '0 runs first, 9 last.' });
}
export const DEFAULT_QUEUE = 'default';

/** A job as it is read back. Times are ms since the epoch, in store time. */
export interface Job {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly state: JobState;
  readonly lane: Lane;
  readonly priority: number;
  readonly payload: unknown;
  /** Of the definition with which it was enqueued; null when that carried none, and is then taken for 1. */
  readonly version: number | null;
  readonly key: string | null;
  readonly tags: readonly string[];
  /** Where it was enqueued: a W3C traceparent and, after a space, a tracestate if there is one; null when nothing was traced. */
  readonly trace: string | null;
  readonly resource: string | null;
  /** The limits that it stands behind, and under which key. */
  readonly limits: readonly LimitKey[];
  readonly policy: RetryPolicy;
  /** How often it was started; the number of the newest run. */
  readonly runs: number;
  /** How many of those count against the cap. */
  readonly attempts: number;
  readonly crashes: number;
  readonly enqueuedAt: number;
  /** When it is, was, or will next be claimable. */
  readonly dueAt: number;
  readonly firstStartedAt: number | null;
  readonly finishedAt: number | null;
  readonly leaseEndsAt: number | null;
  readonly worker: string | null;
  readonly deadReason: DeadReason | null;
  readonly lastError: StoredError | null;
  readonly progress: unknown;
  /** What the handler returned; null when that was nothing, or could not be stored: then `resultError` says why. */
  readonly result: unknown;
  readonly resultError: string | null;
  readonly cancelRequested: boolean;
}

/** One row of the ledger: a finished run, what it did and what was decided. */
export interface RunRecord {
  readonly jobId: string;
  readonly run: number;
  /** The attempt this run was when it started, counted or given back since. */
  readonly attempt: number;
  readonly outcome: OutcomeKind;
  readonly counted: boolean;
  readonly worker: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly error: StoredError | null;
  readonly decision: Decision;
  /** When the job may run next; null when it ended. */
  readonly nextDueAt: number | null;
}

/** What a settlement does to a job's row: the only way to build one is from a decision. */
export interface Settled {
  readonly state: Next<'running'>;
  /** The lane it goes to; null for the one it came from. */
  readonly lane: Lane | null;
  readonly counted: boolean;
  /**
   * False when the job was handed back: its deadline does not start, as if it had never been claimed, and the time for
   * which no worker has known its name goes on.
   */
  readonly ran: boolean;
  /** null when the job has ended. */
  readonly dueAt: number | null;
  readonly deadReason: DeadReason | null;
  /** True when a cancel ended a job that would otherwise wait again. */
  readonly overruled: boolean;
}

/**
 * A cancel may arrive after the worker decided and before it settles. The job would then wait again although it was
 * cancelled, so it ends here. The ledger keeps the decision as it was made. `runNowAt`: while it ran, the job was to run again at
 * that time; its wait ends then, if not sooner.
 */
export function settledBy(
  decision: Decision,
  cancelRequested: boolean,
  now: number,
  runNowAt: number | null = null,
): Settled {
  const settled = byDecision(decision, now);
  if (settled.dueAt === null) return { ...settled, overruled: false };
  if (cancelRequested) return { ...settled, state: 'cancelled', lane: null, dueAt: null, overruled: true };
  const dueAt = runNowAt === null ? settled.dueAt : Math.min(settled.dueAt, Math.max(now, runNowAt));
  return { ...settled, dueAt, overruled: false };
}

function byDecision(decision: Decision, now: number): Omit<Settled, 'overruled'> {
  switch (decision.kind) {
    case 'complete':
      return { state: 'completed', lane: null, counted: true, ran: true, dueAt: null, deadReason: null };
    case 'cancel':
      return { state: 'cancelled', lane: null, counted: decision.counted, ran: true, dueAt: null, deadReason: null };
    case 'dead':
      return {
        state: 'dead',
        lane: null,
        counted: decision.counted,
        ran: true,
        dueAt: null,
        deadReason: decision.reason,
      };
    case 'retry':
    case 'defer':
      return {
        state: 'retrying',
        lane: decision.lane,
        counted: decision.kind === 'retry',
        ran: true,
        dueAt: now + decision.delayMs,
        deadReason: null,
      };
    case 'snooze':
    case 'release':
      return {
        state: decision.delayMs > 0 ? 'scheduled' : 'ready',
        lane: null,
        counted: false,
        ran: decision.kind === 'snooze',
        dueAt: now + decision.delayMs,
        deadReason: null,
      };
  }
}

/** Waiting jobs become ready by time alone, so the stored state is read together with the clock. */
export function stateAt(stored: JobState, dueAt: number, now: number): JobState {
  return (stored === 'scheduled' || stored === 'retrying') && dueAt <= now ? 'ready' : stored;
}
