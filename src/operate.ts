import { newOrder, type OrderOptions, readOperator } from './audit.ts';
import { type BulkOrder, type BulkProgress, type BulkResult, bulkResult, preview, runBulk } from './bulk/bulk.ts';
import { exported } from './bulk/export.ts';
import { type Rate, readInterval } from './bulk/rate.ts';
import { checkConditions, orderText, readSelection, type Selection, selectionNames } from './bulk/selection.ts';
import type { Clock } from './clock.ts';
import {
  checkBoolean,
  checkInteger,
  checkName,
  isPlainObject,
  namesOf,
  readOptions,
  unexpected,
  withoutUndefined,
} from './config.ts';
import { type Duration, parseDuration } from './duration.ts';
import { checkClient } from './enqueue-options.ts';
import { findGroup } from './error-groups.ts';
import { ConfigError } from './errors.ts';
import type { Job, RunRecord } from './job.ts';
import { operatorName } from './operator.ts';
import { holdNote, releaseNote } from './order-notes.ts';
import { encodeJson } from './payload.ts';
import type { RunLog } from './run-log.ts';
import { type ChangeAction, statesFor } from './store/change.ts';
import { type JobCount, type JobFilter, type JobList, type JobSelection, statesOf } from './store/selection.ts';
import type { CancelAnswer, QueueInfo, Store, TransactionClient } from './store/store.ts';
import { read } from './untrusted/thrown.ts';

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 10_000;
/** The logs of so many runs are shown, unless another number is asked for. */
export const LOGS_SHOWN = 50;
export const CANARY_TIMEOUT = '10m';

export interface ListOptions extends Selection {
  /** Continue after this job, the last one of the page before. */
  readonly after?: string;
}

/** What all bulk actions take, beside the selection. */
export interface BulkOptions {
  /** Only count the jobs, and show a few of them. */
  readonly dryRun?: boolean;
  /** Who ordered it, for the record. Default: user@host of this process. */
  readonly by?: string;
  /** Called after each part. */
  readonly onProgress?: (progress: BulkProgress) => void;
  /** Stops after the current part. The same call later continues. */
  readonly signal?: AbortSignal;
}

export type CancelOptions = Selection & BulkOptions;
export type DiscardOptions = Omit<Selection, 'state'> & BulkOptions;

export interface RunNowOptions extends Selection, BulkOptions {
  /** Spreads the due times: `'50/s'`. Without it, all are due at once. */
  readonly rate?: Rate;
  /**
   * A client inside a transaction of yours (PostgreSQL): the order counts when that is committed. With `ids`, and none of the other
   * options but `by`. Call it last: until the commit, workers that run one of these jobs wait to renew their leases.
   */
  readonly tx?: TransactionClient;
}

export interface RedriveOptions extends Omit<Selection, 'state'>, BulkOptions {
  readonly rate?: Rate;
  /** Go on with the attempts that were left; without it, each job gets all its attempts again. */
  readonly keepAttempts?: boolean;
  /** Redrive so many first, and the rest only when all of these have completed, none of them after a failure. */
  readonly canary?: number;
  /** How long to wait for them. Default 10 minutes. */
  readonly canaryTimeout?: Duration;
  /** Another payload, for a single job. */
  readonly edit?: unknown;
}

const bulkNames = [
  ...selectionNames,
  ...namesOf<BulkOptions>({ dryRun: true, by: true, onProgress: true, signal: true }),
];
const redriveNames = [...bulkNames, 'rate', 'keepAttempts', 'canary', 'canaryTimeout', 'edit'];

/** What this process needs to operate on jobs. */
export interface OperateSettings {
  readonly store: Store;
  readonly clock: Clock;
  readonly maxPayloadBytes: number;
}

export class Jobs {
  readonly #settings: OperateSettings;
  readonly #store: Store;

  constructor(settings: OperateSettings) {
    this.#settings = settings;
    this.#store = settings.store;
  }

  /** One job; null when there is none with that id. */
  async get(id: string): Promise<Job | null> {
    return (await this.#store.get([checkName(id, 'jobs.get: id')]))[0] ?? null;
  }

  /** The jobs whose ids begin like this, at most `limit` of them. */
  async find(prefix: string, limit = 10): Promise<Job[]> {
    const idPrefix = checkName(prefix, 'jobs.find: prefix').toLowerCase();
    return this.#store.list({
      idPrefix,
      limit: checkInteger(limit, 'jobs.find: limit', { min: 1, max: LARGEST_PAGE }),
    });
  }

  /**
   * Newest first; 50 unless `limit` says otherwise. Continue with `after: lastId`. Jobs of one finished state (`state: 'dead'`)
   * come in the order in which they ended. A search by `message` looks at 100,000 jobs at most; when it stopped there, the
   * list has `stoppedAfter`, to continue with.
   */
  async list(options: ListOptions = {}): Promise<JobList> {
    return this.#store.list(
      await withError(this.#store, readFilter(options, this.#settings, 'jobs.list'), 'jobs.list'),
    );
  }

  /** How many jobs match. `isExact` is false when counting stopped early: at 1,000,000, or by `message` after 100,000 jobs. */
  async count(selection: Selection = {}): Promise<JobCount> {
    const given = readOptions(selection, selectionNames, 'jobs.count');
    const read = readSelection(given, 'jobs.count', this.#settings.clock.now());
    return this.#store.count(await withError(this.#store, read, 'jobs.count'));
  }

  /** All jobs that match, one after the other, read in pages. */
  export(selection: Selection = {}): AsyncGenerator<Job> {
    const given = readOptions(selection, selectionNames, 'jobs.export');
    return exportAll(this.#store, readSelection(given, 'jobs.export', this.#settings.clock.now()), 'jobs.export');
  }

  /** The ledger of a job: one record per finished run, oldest first. */
  async runs(id: string): Promise<RunRecord[]> {
    return this.#store.runs(checkName(id, 'jobs.runs: id'));
  }

  /** What the handler wrote to `context.log`: the last lines of each run, newest run first; of at most `limit` runs. */
  async logs(id: string, limit: number = LOGS_SHOWN): Promise<RunLog[]> {
    const most = checkInteger(limit, 'jobs.logs: limit', { min: 1, max: LARGEST_PAGE });
    return this.#store.logs(checkName(id, 'jobs.logs: id'), most);
  }

  /**
   * Ends waiting jobs at once; the signal of a running one aborts within a second. Of one job by its id, answers what
   * became of it, and leaves a row in the audit only with `by`: an application cancels its own jobs. Or give a selection. `cancelling` is no promise: a run that returns all the same completes its job.
   * @example await mulligan.jobs.cancel({ tag: 'endpoint:42' })
   */
  async cancel(id: string, options?: OrderOptions): Promise<CancelAnswer['result']>;
  async cancel(selection: CancelOptions): Promise<BulkResult>;
  async cancel(
    which: string | CancelOptions,
    options: OrderOptions = {},
  ): Promise<CancelAnswer['result'] | BulkResult> {
    if (isPlainObject(which)) {
      return order(this.#settings, 'cancel', readOptions(which, bulkNames, 'jobs.cancel'), 'jobs.cancel');
    }
    const id = checkName(which, 'jobs.cancel: id');
    const { by } = readOptions(options, ['by'], 'jobs.cancel');
    const given = by === undefined ? [] : [newOrder(this.#settings.clock, readOperator(by, 'jobs.cancel'), null)];
    const [answer] = await this.#store.cancel([id], ...given);
    return (answer as CancelAnswer).result;
  }

  /**
   * Lets scheduled and retrying jobs start now, or spread by `rate`. They keep their history, attempts and key. A job that runs
   * goes on, and its next wait (a snooze, the backoff of a retry) ends at once.
   * @example await mulligan.jobs.runNow({ state: 'retrying', error: fingerprint, rate: '50/s' })
   */
  async runNow(options: RunNowOptions): Promise<BulkResult> {
    const { tx, ...given } = readOptions(options, [...bulkNames, 'rate', 'tx'], 'jobs.runNow');
    if (tx !== undefined) return runNowInside(this.#settings, given, checkClient(tx, 'jobs.runNow'));
    return order(this.#settings, 'runNow', given, 'jobs.runNow');
  }
}

export class DeadJobs {
  readonly #settings: OperateSettings;

  constructor(settings: OperateSettings) {
    this.#settings = settings;
  }

  /** The newest dead first. */
  async list(options: Omit<ListOptions, 'state'> = {}): Promise<JobList> {
    const filter = readFilter(options, this.#settings, 'dead.list');
    refuseState(filter, 'dead.list');
    const { store } = this.#settings;
    return store.list({ ...(await withError(store, filter, 'dead.list')), state: 'dead' });
  }

  async count(selection: Omit<Selection, 'state'> = {}): Promise<JobCount> {
    const { store } = this.#settings;
    return store.count(await withError(store, this.#select(selection, 'dead.count'), 'dead.count'));
  }

  export(selection: Omit<Selection, 'state'> = {}): AsyncGenerator<Job> {
    return exportAll(this.#settings.store, this.#select(selection, 'dead.export'), 'dead.export');
  }

  /**
   * Makes dead jobs ready again, oldest first. They keep their ledger and get all their attempts again. In parts, each a
   * transaction: when the process ends in the middle, the same call continues, and no job is redriven twice.
   * @example await mulligan.dead.redrive({ error: fingerprint, canary: 10, rate: '50/s' })
   */
  async redrive(options: RedriveOptions): Promise<BulkResult> {
    const given = readOptions(options, redriveNames, 'dead.redrive');
    refuseState(given, 'dead.redrive');
    return order(this.#settings, 'redrive', given, 'dead.redrive');
  }

  /** Deletes dead jobs and their ledgers for good, oldest first. */
  async discard(options: DiscardOptions): Promise<BulkResult> {
    const given = readOptions(options, bulkNames, 'dead.discard');
    refuseState(given, 'dead.discard');
    return order(this.#settings, 'discard', given, 'dead.discard');
  }

  #select(selection: Selection, what: string): JobSelection {
    const given = readOptions(selection, selectionNames, what);
    refuseState(given, what);
    return { ...readSelection(given, what, this.#settings.clock.now()), state: 'dead' };
  }
}

/** A state other than dead is a mistake here, and the answer says what to use. */
function refuseState(given: object, what: string): void {
  const { state } = given as Selection;
  if (state === undefined || state === 'dead') return;
  throw unexpected(
    `${what}: state`,
    'no state, since only dead jobs are meant here',
    state,
    'Use jobs.runNow for scheduled and retrying jobs, jobs.cancel for those that wait or run.',
  );
}

async function order(
  settings: OperateSettings,
  action: ChangeAction,
  options: RedriveOptions & Selection,
  what: string,
): Promise<BulkResult> {
  const { dryRun = false } = options;
  const given = readOrder(settings, action, await withKnownError(settings.store, options, what), what);
  return checkBoolean(dryRun, `${what}: dryRun`)
    ? preview(settings.store, settings.clock, given)
    : runBulk(settings.store, settings.clock, given);
}

/** In the caller's transaction. Which jobs those are is known before: to search for them would keep it open. */
async function runNowInside(
  { store, clock }: OperateSettings,
  given: Omit<RunNowOptions, 'tx'>,
  tx: TransactionClient,
): Promise<BulkResult> {
  const what = 'jobs.runNow';
  if (store.transactions === undefined) {
    throw new ConfigError(`${what}: tx needs a store that shares its database with you: open a postgres:// one.`);
  }
  const { ids, by, ...others } = withoutUndefined(given);
  if (ids === undefined || Object.keys(others).length > 0) {
    const hint = 'Without tx, it takes any selection.';
    const got = Object.keys(given).join(', ') || 'none';
    throw new ConfigError(`${what}: tx: expected ids, and none of the other options but by, got ${got}. ${hint}`);
  }
  const selection = readSelection({ ids }, what, clock.now());
  const answer = await store.transactions.runNow(tx, {
    id: clock.newId(),
    order: orderText(selection, {}, undefined),
    by: by === undefined ? operatorName() : checkName(by, `${what}: by`),
    ids: selection.ids as readonly string[],
  });
  return bulkResult(store, 'runNow', selection, answer);
}

/** With the whole fingerprint, where only the start of it was given. One that no job has is left as it is. */
async function withError<T extends { readonly error?: string }>(store: Store, selection: T, what: string): Promise<T> {
  if (selection.error === undefined) return selection;
  const group = await findGroup(store, selection.error, `${what}: error`);
  return group === null ? selection : { ...selection, error: group.fingerprint };
}

/** For actions: a fingerprint that no job has is a mistake, and leaves no operation behind. */
async function withKnownError<T extends Selection>(store: Store, selection: T, what: string): Promise<T> {
  if (selection.error === undefined) return selection;
  const asked = checkName(selection.error, `${what}: error`);
  const group = await findGroup(store, asked, `${what}: error`);
  if (group !== null) return { ...selection, error: group.fingerprint };
  // Its group may be gone, or an earlier version may have settled its jobs.
  if ((await store.count({ error: asked })).count > 0) return selection;
  throw unexpected(`${what}: error`, 'the fingerprint of an error, or the start of one', asked, 'See errors.list.');
}

function readOrder(
  { clock, maxPayloadBytes }: OperateSettings,
  action: ChangeAction,
  options: RedriveOptions & Selection,
  what: string,
): BulkOrder {
  const { by, rate, keepAttempts = false, canary, canaryTimeout = CANARY_TIMEOUT, edit, onProgress, signal } = options;
  checkConditions(options, what);
  const selection = readSelection(options, what, clock.now());
  refuseStates(action, selection, what);
  if (edit !== undefined && selection.ids?.length !== 1) {
    throw unexpected(`${what}: edit`, 'exactly one id in ids', selection.ids ?? 'none', 'Edit one job at a time.');
  }
  const limit = { maxBytes: maxPayloadBytes, advice: 'Store the data elsewhere, or raise maxPayloadBytes.' };
  const payload = edit === undefined ? undefined : encodeJson(edit, limit, `${what}: edit`);
  return {
    action,
    selection,
    order: orderText(selection, options, payload),
    continues: undefined,
    by: by === undefined ? operatorName() : checkName(by, `${what}: by`),
    what,
    rate: rate ?? null,
    intervalMs: readInterval(rate, `${what}: rate`),
    keepAttempts: checkBoolean(keepAttempts, `${what}: keepAttempts`),
    payload,
    canary: canary === undefined ? 0 : checkInteger(canary, `${what}: canary`, { min: 1, max: 1_000 }),
    canaryTimeoutMs: parseDuration(canaryTimeout, `${what}: canaryTimeout`),
    signal: checkSignal(signal, `${what}: signal`),
    onProgress: checkCallback(onProgress, `${what}: onProgress`),
  };
}

function checkSignal(signal: unknown, what: string): AbortSignal | undefined {
  if (signal === undefined || typeof read(signal, 'throwIfAborted') === 'function') return signal as AbortSignal;
  throw unexpected(what, 'an AbortSignal', signal);
}

function checkCallback(callback: unknown, what: string): BulkOptions['onProgress'] {
  if (callback === undefined || typeof callback === 'function') return callback as BulkOptions['onProgress'];
  throw unexpected(what, 'a function', callback);
}

/** A selection of states that the action does not apply to could only ever find nothing. */
function refuseStates(action: ChangeAction, selection: JobSelection, what: string): void {
  if (selection.state === undefined && selection.reason === undefined) return;
  const applicable = statesFor[action];
  if (statesOf(selection).some((state) => applicable.includes(state))) return;
  const asked = selection.reason === undefined ? [selection.state].flat().join(', ') : 'dead ones, by reason';
  const hint = action === 'runNow' ? ' Use dead.redrive for dead jobs.' : '';
  throw new ConfigError(`${what}: expected jobs that are ${applicable.join(', ')}, got ${asked}.${hint}`);
}

/** `export` itself waits for nothing: the whole fingerprint is looked up before the first page. */
async function* exportAll(store: Store, selection: JobSelection, what: string): AsyncGenerator<Job> {
  yield* exported(store, await withError(store, selection, what), what);
}

function readFilter(options: ListOptions, { clock }: OperateSettings, what: string): JobFilter {
  const given = readOptions(options, [...selectionNames, 'after'], what);
  const { limit = DEFAULT_PAGE, after } = given;
  return {
    ...readSelection({ ...given, limit: 1 }, what, clock.now()),
    ...(after === undefined ? {} : { after: checkName(after, `${what}: after`) }),
    limit: checkInteger(limit, `${what}: limit`, { min: 1, max: LARGEST_PAGE }),
  };
}

export class Queues {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  async list(): Promise<QueueInfo[]> {
    return this.#store.queues();
  }

  /** No worker claims from a paused queue; running jobs continue. */
  async pause(queue: string, options: OrderOptions = {}): Promise<void> {
    const checked = checkName(queue, 'queues.pause');
    const by = readOperator(readOptions(options, ['by'], 'queues.pause').by, 'queues.pause');
    const target = { queue: checked };
    await this.#store.hold(target, null, newOrder(this.#clock, by, holdNote(target, null)));
  }

  async resume(queue: string, options: OrderOptions = {}): Promise<void> {
    const checked = checkName(queue, 'queues.resume');
    const by = readOperator(readOptions(options, ['by'], 'queues.resume').by, 'queues.resume');
    const target = { queue: checked };
    await this.#store.release(target, newOrder(this.#clock, by, releaseNote(target)));
  }
}
