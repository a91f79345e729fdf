import { checkBoolean, checkInteger, checkList, checkOneOf, namesOf, readOptions, unexpected } from './config.ts';
import { checkName } from './definition.ts';
import { type Job, type RunRecord, states } from './job.ts';
import { deadReasons } from './retry/decision.ts';
import type {
  CancelAnswer,
  DeadSelection,
  JobFilter,
  QueueInfo,
  Redriven,
  RedriveRequest,
  Store,
} from './store/store.ts';

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 10_000;
/** How many dead jobs one transaction redrives or deletes: few enough that other calls do not wait long behind it. */
const AT_ONCE = 1_000;

export type ListOptions = Partial<JobFilter>;

export class Jobs {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** One job; null when there is none with that id. */
  async get(id: string): Promise<Job | null> {
    return (await this.#store.get([checkName(id, 'jobs.get: id')]))[0] ?? null;
  }

  /** Newest first; 50 unless `limit` says otherwise. Continue with `after: lastId`. */
  async list(options: ListOptions = {}): Promise<Job[]> {
    return this.#store.list(readFilter(options, [...filterKeys, 'state'], 'jobs.list'));
  }

  /** The ledger of a job: one record per finished run, oldest first. */
  async runs(id: string): Promise<RunRecord[]> {
    return this.#store.runs(checkName(id, 'jobs.runs: id'));
  }

  /** Ends a waiting job at once; the signal of a running one aborts within a heartbeat. */
  async cancel(id: string): Promise<CancelAnswer['result']> {
    const [answer] = await this.#store.cancel([checkName(id, 'jobs.cancel: id')]);
    return (answer as CancelAnswer).result;
  }
}

export type RedriveOptions = DeadSelection & Partial<Pick<RedriveRequest, 'attempts' | 'dryRun'>>;

export class DeadJobs {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async list(options: Omit<ListOptions, 'state'> = {}): Promise<Job[]> {
    return this.#store.list({ ...readFilter(options, filterKeys, 'dead.list'), state: 'dead' });
  }

  /**
   * Makes dead jobs ready again, oldest first. They keep their ledger and get all their attempts again, or with
   * `attempts: 'keep'` only those that were left. `dryRun` reports what would happen. Many jobs are redriven in parts: after
   * a failure the parts before it are done, and a second call continues.
   */
  async redrive(options: RedriveOptions): Promise<Redriven> {
    const given = readOptions(options, [...selectionKeys, 'attempts', 'dryRun'], 'dead.redrive');
    const { attempts = 'reset', dryRun = false, ...selection } = given;
    const request: RedriveRequest = {
      ...readSelection(selection, 'dead.redrive'),
      attempts: checkOneOf(attempts, ['reset', 'keep'], 'dead.redrive: attempts'),
      dryRun: checkBoolean(dryRun, 'dead.redrive: dryRun'),
    };
    const { limit = Number.POSITIVE_INFINITY } = request;
    return request.dryRun || limit <= AT_ONCE ? this.#store.redrive(request) : this.#redriveInParts(request);
  }

  /** Deletes dead jobs and their ledgers, oldest first; returns their ids. */
  async discard(selection: DeadSelection): Promise<string[]> {
    const given = readSelection(readOptions(selection, selectionKeys, 'dead.discard'), 'dead.discard');
    const { limit = Number.POSITIVE_INFINITY } = given;
    const deleted: string[] = [];
    for (;;) {
      const wanted = Math.min(AT_ONCE, limit - deleted.length);
      const part = await this.#store.discard({ ...given, limit: wanted });
      deleted.push(...part);
      if (part.length < wanted || deleted.length >= limit) return deleted;
    }
  }

  async #redriveInParts(request: RedriveRequest): Promise<Redriven> {
    const planned = await this.#store.redrive({ ...request, dryRun: true });
    const ids: string[] = [];
    const skipped = [...planned.skipped];
    for (let at = 0; at < planned.ids.length; at += AT_ONCE) {
      const part = await this.#store.redrive({ ...request, ids: planned.ids.slice(at, at + AT_ONCE) });
      ids.push(...part.ids);
      skipped.push(...part.skipped);
    }
    return { ids, skipped };
  }
}

export class Queues {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async list(): Promise<QueueInfo[]> {
    return this.#store.queues();
  }

  /** No worker claims from a paused queue; running jobs continue. */
  async pause(queue: string): Promise<void> {
    return this.#store.hold({ queue: checkName(queue, 'queues.pause') }, null);
  }

  async resume(queue: string): Promise<void> {
    return this.#store.release({ queue: checkName(queue, 'queues.resume') });
  }
}

const filterKeys = namesOf<Omit<JobFilter, 'state'>>({ queue: true, name: true, key: true, limit: true, after: true });

function readFilter(options: ListOptions, known: readonly (keyof ListOptions)[], what: string): JobFilter {
  const given = readOptions(options, known, what);
  const { state, limit = DEFAULT_PAGE, ...texts } = given;
  const read = Object.entries(texts)
    .filter(([, value]) => value !== undefined)
    .map(([field, value]) => [field, checkName(value, `${what}: ${field}`)]);
  return {
    ...(state === undefined ? {} : { state: checkOneOf(state, states, `${what}: state`) }),
    ...Object.fromEntries(read),
    limit: checkInteger(limit, `${what}: limit`, { min: 1, max: LARGEST_PAGE }),
  };
}

const selectionKeys = namesOf<DeadSelection>({ ids: true, name: true, queue: true, reason: true, limit: true });

function readSelection(selection: DeadSelection, what: string): DeadSelection {
  const { ids, name, queue, reason, limit } = selection;
  if (ids === undefined && name === undefined && queue === undefined && reason === undefined) {
    throw unexpected(what, 'at least one of ids, name, queue or reason', selection);
  }
  return {
    ...(ids === undefined ? {} : { ids: readIds(ids, `${what}: ids`) }),
    ...(name === undefined ? {} : { name: checkName(name, `${what}: name`) }),
    ...(queue === undefined ? {} : { queue: checkName(queue, `${what}: queue`) }),
    ...(reason === undefined ? {} : { reason: checkOneOf(reason, deadReasons, `${what}: reason`) }),
    ...(limit === undefined ? {} : { limit: checkInteger(limit, `${what}: limit`, { min: 1 }) }),
  };
}

function readIds(ids: unknown, what: string): string[] {
  return checkList(ids, what, 'a list of job ids', (id, index) => checkName(id, `${what}[${index}]`));
}
