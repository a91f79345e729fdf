import type { JobState } from '../job.ts';
import { type JobSelection, statesOf } from './selection.ts';

/*
 * Bulk actions. Each is an operation: a row that says who ordered what and when, and how far it has come. Every call of
 * `Store.change` does the next part of it, in one bounded transaction that also moves the operation on. So a process that is
 * killed loses nothing: the same order, given again, finds its unfinished operation and goes on where it stopped.
 *
 *   running   the order was given, and its selection is not exhausted
 *   done      every job that it selected when it began was changed or skipped
 *   stopped   ended before that, for the reason in `note`
 *
 * An operation concerns the jobs that matched when it began (`startedAt`): a job that it brings back and that dies again
 * meanwhile is not brought back twice.
 */
export const changeActions = ['cancel', 'runNow', 'redrive', 'discard'] as const;
export type ChangeAction = (typeof changeActions)[number];

/** The states that each action applies to; a selection is narrowed to them. */
export const statesFor: Readonly<Record<ChangeAction | RecordedAction, readonly JobState[]>> = {
  cancel: ['scheduled', 'ready', 'retrying', 'running'],
  runNow: ['scheduled', 'retrying', 'running'],
  redrive: ['dead'],
  discard: ['dead'],
  pause: [],
  resume: [],
  limit: [],
  schedule: [],
  gate: [],
  reveal: [],
  retention: [],
};

/**
 * The selected states that an order applies to. An order for so many jobs leaves those alone that run: of a job that runs, `runNow`
 * only ends the next wait, and the caller wants to see so many start.
 */
export function statesToChange(action: ChangeAction | RecordedAction, selection: JobSelection): readonly JobState[] {
  const applicable = statesOf(selection).filter((state) => statesFor[action].includes(state));
  if (action !== 'runNow' || selection.limit === undefined) return applicable;
  return applicable.filter((state) => state !== 'running');
}

/** Orders that concern no jobs. Each is on record as an operation that is done, with what was ordered in its note. */
export const recordedActions = ['pause', 'resume', 'limit', 'schedule', 'gate', 'reveal', 'retention'] as const;
export type RecordedAction = (typeof recordedActions)[number];

/** The state in which `stop` ends an operation. */
export function stateAfterStop(action: ChangeAction | RecordedAction): 'done' | 'stopped' {
  return (recordedActions as readonly string[]).includes(action) ? 'done' : 'stopped';
}

/** Of an operator, by a verb that is no bulk action: see orders.ts. */
export interface Order {
  /** A UUID. */
  readonly id: string;
  /** Who gave it. */
  readonly by: string;
  /** What was ordered, in a sentence. Null where action and selection say it all. */
  readonly note: string | null;
}

export interface ChangeRequest {
  /** A UUID for the operation, if this call begins one. */
  readonly id: string;
  readonly action: ChangeAction | RecordedAction;
  /** `limit` bounds the whole operation; jobs that are skipped count too. */
  readonly selection: JobSelection;
  /** What makes two orders of one action the same. An unfinished operation of the same order is continued. */
  readonly order: string;
  /** Who gave the order. */
  readonly by: string;
  /** At most so many jobs in this call; 0 only begins or finds the operation. */
  readonly part: number;
  /** Due times lie this far apart; 0 for all at once. For runNow and redrive. */
  readonly intervalMs: number;
  /** Redriven jobs go on with the attempts that were left, instead of all. */
  readonly keepAttempts: boolean;
  /** The operation remembers the first so many jobs that it changed. */
  readonly canary: number;
  /** Another payload for the redriven job, as JSON text. */
  readonly payload?: string;
  /** How it was ordered, for the record: written when it begins and with each part. */
  readonly options?: OperationOptions;
  /** Ends the operation as stopped, also one that is done already, and changes nothing. One of a recorded action is done. */
  readonly stop?: string;
}

export interface OperationOptions {
  /** 0 without a canary. */
  readonly canary: number;
  readonly keepAttempts: boolean;
  /** Of the last call that worked on it: `'50/s'`. */
  readonly rate: string | null;
  /** The last one who continued it. */
  readonly continuedBy: string | null;
}

export interface ChangeAnswer {
  readonly operation: Operation;
  readonly ids: readonly string[];
  readonly skipped: readonly SkippedJob[];
  /** How many of `ids` run, and were told to stop. */
  readonly cancelling: number;
}

export interface SkippedJob {
  readonly id: string;
  readonly why: SkipReason;
}

/**
 * key-taken: a live job holds its key. nothing-left: attempts were kept, and all are spent. due-sooner: it was to run now at a rate,
 * and is due before its turn.
 */
export type SkipReason = 'key-taken' | 'nothing-left' | 'due-sooner';

export const operationStates = ['running', 'done', 'stopped'] as const;

export interface Operation {
  readonly id: string;
  readonly action: ChangeAction | RecordedAction;
  readonly by: string;
  readonly selection: JobSelection;
  /** Null when the version that began it did not keep them. */
  readonly options: OperationOptions | null;
  readonly state: (typeof operationStates)[number];
  /** Only jobs that matched by then are concerned. */
  readonly startedAt: number;
  readonly updatedAt: number;
  readonly endedAt: number | null;
  readonly changed: number;
  readonly skipped: number;
  /** The first jobs that were changed, when a canary was asked for. */
  readonly canary: readonly string[];
  readonly note: string | null;
  /** Where due times are spread: when the next job would be due, with the part of a millisecond that a rate gives. */
  readonly nextDueAt: number;
}

/**
 * A cancel takes jobs by the state that they had when the operation began: while it goes on, scheduled jobs become ready and ready ones
 * start, and they were not asked for. A job that was claimed since the operation began was waiting then. This says whether a selection
 * of these states concerns it if it was due (`wasReady`), and if it was not (`wasLater`: scheduled or retrying).
 */
export function runningSince(states: readonly JobState[]): { readonly wasReady: boolean; readonly wasLater: boolean } {
  return { wasReady: states.includes('ready'), wasLater: states.includes('scheduled') || states.includes('retrying') };
}

/** Ended operations are kept for so long. */
export const OPERATIONS_KEPT_MS: number = 90 * 24 * 3_600_000;
/** An operation without progress for so long is over: the same order begins another one. */
export const RESUMED_WITHIN_MS: number = 24 * 3_600_000;

/** How many jobs one call may change: fewer near the end of a bounded operation. */
export function sizeOfPart(operation: Pick<Operation, 'changed' | 'skipped' | 'selection'>, part: number): number {
  const { limit = Number.POSITIVE_INFINITY } = operation.selection;
  return Math.max(0, Math.min(part, limit - operation.changed - operation.skipped));
}

export function isExhausted({
  changed,
  skipped,
  selection,
}: Pick<Operation, 'changed' | 'skipped' | 'selection'>): boolean {
  return changed + skipped >= (selection.limit ?? Number.POSITIVE_INFINITY);
}
