import type { Clock } from '../clock.ts';
import { ConflictError } from '../errors.ts';
import { isTerminal, type Job, type JobState } from '../job.ts';
import {
  type ChangeAction,
  type ChangeRequest,
  type Operation,
  type OperationOptions,
  RESUMED_WITHIN_MS,
  type SkippedJob,
  statesFor,
  statesToChange,
} from '../store/change.ts';
import { getAll } from '../store/page.ts';
import type { JobCount, JobSelection } from '../store/selection.ts';
import type { ChangeAnswer, Store } from '../store/store.ts';
import { type CanaryProgress, watchCanaries } from './canary.ts';

/*
 * A bulk action, from the order to its end: begin or continue the operation -> the canary, if one is asked for -> the rest,
 * part by part. All that must survive this process is in the operation (store/change.ts).
 */

/** How many jobs one transaction changes: few enough that other calls do not wait long behind it. */
const AT_ONCE = 500;
/** Results name no more jobs than this; counts are complete. */
export const MOST_NAMED = 10_000;
const SAMPLES = 5;
/** So many dead jobs are read to find those that died first. */
const MOST_SORTED = 1_000;
/** So many of the latest operations are looked at for one that a dry run would continue. */
const MOST_COMPARED = 1_000;

export interface BulkProgress {
  /** How many were changed and skipped so far, also by an earlier call that this one continues. */
  readonly changed: number;
  readonly skipped: number;
  /** How many jobs there were to change in all, when the operation began. */
  readonly total: JobCount;
  readonly operation: Operation;
  /** While canaries are waited for. */
  readonly canary: CanaryProgress | null;
}

export interface BulkResult {
  readonly dryRun: boolean;
  /** How many jobs were changed; of a dry run, how many would be looked at. */
  readonly count: number;
  /** False only for a dry run whose count stopped early: there are at least `count`. */
  readonly isExact: boolean;
  /** Of a dry run: some of the jobs. */
  readonly samples: readonly Job[];
  /** The jobs that this call changed; no more than 10,000 of them. */
  readonly ids: readonly string[];
  /** Those that it could not change, and why. */
  readonly skipped: readonly SkippedJob[];
  /** Of those that this call cancelled: how many run, and were told to stop. */
  readonly cancelling: number;
  /** With a rate: when the last of them is due, at the latest. */
  readonly dueUntil: number | null;
  /** Of the given ids: those that the action does not apply to, what they are, and which call does apply. */
  readonly others: readonly OtherJob[];
  /** What was left on record. Of a dry run: the unfinished one that the call would continue. Null when there is none. */
  readonly operation: Operation | null;
  /** True when this continues an operation that an earlier call had not finished: jobs that came later are not part of it. */
  readonly resumed: boolean;
  /** Why the rest was left as it was; null when the operation is done. */
  readonly stopped: string | null;
}

export interface OtherJob {
  readonly id: string;
  readonly state: JobState | 'not-found' | 'not-selected';
  /** The call that applies to such a job; null when there is none. */
  readonly use: string | null;
}

export interface BulkOrder {
  readonly action: ChangeAction;
  readonly selection: JobSelection;
  readonly order: string;
  /** The id of an unfinished operation to go on with, whatever its order was. */
  readonly continues: string | undefined;
  readonly by: string;
  /** What the errors of the call begin with. */
  readonly what: string;
  readonly rate: string | null;
  readonly intervalMs: number;
  readonly keepAttempts: boolean;
  readonly payload: string | undefined;
  readonly canary: number;
  readonly canaryTimeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((progress: BulkProgress) => void) | undefined;
}

export async function preview(store: Store, clock: Clock, order: BulkOrder): Promise<BulkResult> {
  const { action, selection } = order;
  const operation = await unfinishedOf(store, clock, order);
  if (operation !== null) refuseOtherOptions(order, operation);
  const narrowed = narrow(action, selection);
  const counted = await store.count(narrowed);
  const samples = await samplesOf(store, action, narrowed, counted.count);
  const others = await othersOf(store, action, selection, null);
  return { ...nothing, dryRun: true, ...counted, samples, others, operation, resumed: operation !== null };
}

/**
 * Some of the jobs that the action would change. With a limit that leaves some out, those are the longest dead, which a list has
 * last; of waiting jobs their order is the store's own, so none are shown.
 */
async function samplesOf(
  store: Store,
  action: ChangeAction,
  { limit, ...narrowed }: JobSelection,
  count: number,
): Promise<readonly Job[]> {
  const isBounded = limit !== undefined && count === limit && (await store.count(narrowed)).count > limit;
  if (!isBounded) return store.list({ ...narrowed, limit: SAMPLES });
  if (action !== 'redrive' && action !== 'discard') return [];
  const jobs = await store.list({ ...narrowed, limit: MOST_SORTED + 1 });
  return jobs.length > MOST_SORTED || jobs.stoppedAfter !== undefined
    ? []
    : jobs.toReversed().slice(0, Math.min(SAMPLES, limit));
}

/** The operation that the order would continue. The store knows it by the order; here only its selection can be compared. */
async function unfinishedOf(store: Store, clock: Clock, { action, selection }: BulkOrder): Promise<Operation | null> {
  const since = clock.now() - RESUMED_WITHIN_MS;
  const asked = comparable(selection);
  const found = (await store.operations(MOST_COMPARED)).find(
    (one) =>
      one.endedAt === null && one.action === action && one.updatedAt > since && comparable(one.selection) === asked,
  );
  return found ?? null;
}

/** Without the times: those that were given as durations are other ones with each call. */
function comparable({ since, until, ...selection }: JobSelection): string {
  return JSON.stringify([selection, since !== undefined, until !== undefined]);
}

const nothing: BulkResult = {
  dryRun: false,
  count: 0,
  isExact: true,
  samples: [],
  ids: [],
  skipped: [],
  cancelling: 0,
  dueUntil: null,
  others: [],
  operation: null,
  resumed: false,
  stopped: null,
};

/** What the action can apply to. */
function narrow(action: ChangeAction, selection: JobSelection): JobSelection {
  return { ...selection, state: statesToChange(action, selection) };
}

export function runBulk(store: Store, clock: Clock, order: BulkOrder): Promise<BulkResult> {
  return new Bulk(store, clock, order).run();
}

/** Of an order that one answer of the store has ended. */
export async function bulkResult(
  store: Store,
  action: ChangeAction,
  selection: JobSelection,
  { operation, ids, skipped, cancelling }: ChangeAnswer,
): Promise<BulkResult> {
  const others = await othersOf(store, action, selection, [...ids, ...skipped.map(({ id }) => id)]);
  return { ...nothing, count: operation.changed, ids, skipped, cancelling, others, operation };
}

class Bulk {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #order: BulkOrder;
  #request: ChangeRequest;
  readonly #ids: string[] = [];
  readonly #skipped: SkippedJob[] = [];
  #cancelling = 0;
  #total: JobCount = { count: 0, isExact: true };

  constructor(store: Store, clock: Clock, order: BulkOrder) {
    const { action, selection, by, rate, intervalMs, keepAttempts, canary, payload } = order;
    this.#store = store;
    this.#clock = clock;
    this.#order = order;
    this.#request = {
      id: order.continues ?? clock.newId(),
      action,
      selection,
      order: order.order,
      by,
      part: AT_ONCE,
      intervalMs,
      keepAttempts,
      canary,
      options: { canary, keepAttempts, rate, continuedBy: null },
      ...(payload === undefined ? {} : { payload }),
    };
  }

  async run(): Promise<BulkResult> {
    const { action, selection, onProgress } = this.#order;
    let operation = await this.#change({ part: 0 });
    const isOther = operation.id !== this.#request.id;
    const resumed = isOther || this.#order.continues !== undefined;
    if (isOther) this.#continue(operation);
    if (onProgress) {
      const left = await this.#store.count(narrow(action, selection));
      this.#total = { ...left, count: left.count + operation.changed + operation.skipped };
    }
    this.#report(operation, null);
    const stopped = await this.#canary(operation);
    if (stopped !== null) operation = await this.#change({ stop: stopped });
    while (operation.endedAt === null) {
      operation = await this.#change({});
      this.#report(operation, null);
    }
    const { intervalMs } = this.#order;
    const done = [...this.#ids, ...this.#skipped.map(({ id }) => id)];
    return {
      ...nothing,
      count: operation.changed,
      ids: this.#ids,
      skipped: this.#skipped,
      cancelling: this.#cancelling,
      dueUntil: intervalMs === 0 || operation.changed === 0 ? null : Math.floor(operation.nextDueAt - intervalMs),
      others: resumed ? [] : await othersOf(this.#store, action, selection, done),
      operation,
      resumed,
      stopped: stopped ?? (operation.state === 'stopped' ? operation.note : null),
    };
  }

  /** From here on, all calls name this operation: it may end meanwhile, and the same order would begin another one. */
  #continue(operation: Operation): void {
    refuseOtherOptions(this.#order, operation);
    const { by, rate, canary, keepAttempts } = this.#order;
    this.#request = { ...this.#request, id: operation.id, options: { canary, keepAttempts, rate, continuedBy: by } };
  }

  /** Redrives the first few, at once, and watches them. Null when the rest may follow. */
  async #canary(begun: Operation): Promise<string | null> {
    const { canary, canaryTimeoutMs, signal } = this.#order;
    let operation = begun;
    while (operation.canary.length < canary && operation.endedAt === null) {
      operation = await this.#change({ part: canary - operation.canary.length, intervalMs: 0 });
    }
    // Continued after its canaries had ended well.
    if (operation.canary.length === 0 || operation.changed > operation.canary.length) return null;
    return watchCanaries(this.#store, this.#clock, operation.canary, {
      since: operation.startedAt,
      timeoutMs: canaryTimeoutMs,
      signal,
      onProgress: (progress) => this.#report(operation, progress),
    });
  }

  async #change(changes: Partial<ChangeRequest>): Promise<Operation> {
    this.#order.signal?.throwIfAborted();
    const answer: ChangeAnswer = await this.#store.change({ ...this.#request, ...changes });
    this.#ids.push(...answer.ids.slice(0, MOST_NAMED - this.#ids.length));
    this.#skipped.push(...answer.skipped.slice(0, MOST_NAMED - this.#skipped.length));
    this.#cancelling += answer.cancelling;
    return answer.operation;
  }

  #report(operation: Operation, canary: CanaryProgress | null): void {
    const { changed, skipped } = operation;
    this.#order.onProgress?.({ changed, skipped, total: this.#total, operation, canary });
  }
}

/** The rate may be another one; what decides which jobs are changed, and how, may not. */
function refuseOtherOptions(order: BulkOrder, { id, by, startedAt, changed, options }: Operation): void {
  if (options === null) return;
  if (options.canary === order.canary && options.keepAttempts === order.keepAttempts) return;
  throw new ConflictError(
    id,
    `${order.what}: expected ${optionsText(options)}, as in the unfinished operation ${id} of the same jobs (by ${by}, began ${new Date(startedAt).toISOString()}, ${changed} changed so far), got ${optionsText(order)}. Nothing was changed. Give the same options to continue it, or end it with audit.stop('${id}').`,
  );
}

function optionsText({ canary, keepAttempts }: Pick<OperationOptions, 'canary' | 'keepAttempts'>): string {
  const kept = keepAttempts ? ', attempts kept' : '';
  return `${canary === 0 ? 'no canary' : `a canary of ${canary}`}${kept}`;
}

/** Of the ids that were asked for: what became of none, and why. `done` is null for a dry run. */
async function othersOf(
  store: Store,
  action: ChangeAction,
  { ids }: JobSelection,
  done: readonly string[] | null,
): Promise<OtherJob[]> {
  if (ids === undefined) return [];
  const handled = new Set(done);
  const left = ids.filter((id) => !handled.has(id));
  const found = new Map<string, JobState>();
  for await (const { id, state } of getAll(store, left)) found.set(id, state);
  return left.flatMap((id): OtherJob[] => {
    const state = found.get(id);
    if (state === undefined) return [{ id, state: 'not-found', use: null }];
    if (!statesFor[action].includes(state)) return [{ id, state, use: callFor(state) }];
    // A dry run counts those that would be changed, and does not name them.
    return done === null ? [] : [{ id, state: 'not-selected', use: null }];
  });
}

/** What brings a job of this state to run. */
function callFor(state: JobState): string | null {
  if (state === 'dead') return 'dead.redrive';
  if (state === 'scheduled' || state === 'retrying') return 'jobs.runNow';
  return isTerminal(state) ? 'enqueue' : null;
}
