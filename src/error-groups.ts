import { type Moment, readMoment } from './bulk/selection.ts';
import type { Clock } from './clock.ts';
import { checkInteger, checkName, checkOneOf, namesOf, readOptions } from './config.ts';
import { ConfigError } from './errors.ts';
import { type ErrorHistory, type ErrorHistoryOptions, readErrorHistory } from './observe/error-history.ts';
import { type ErrorGroup, type GroupState, groupStates } from './store/error-groups.ts';
import type { Store } from './store/store.ts';

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 1_000;
/** So many are named when the start of a fingerprint fits several groups. */
const NAMED = 3;

export interface ErrorListOptions {
  /** Only jobs of this name: all numbers are theirs alone. */
  readonly name?: string;
  /** Only jobs that were enqueued in this queue. */
  readonly queue?: string;
  /** Only groups that have failing, or dead, jobs now. */
  readonly state?: GroupState;
  /** Only groups that were seen since then: a Date, or how long ago: `'2h'`. */
  readonly since?: Moment;
  /** How many at most. Default 50. */
  readonly limit?: number;
}

const optionNames = namesOf<ErrorListOptions>({ name: true, queue: true, state: true, since: true, limit: true });

/** What jobs fail with. Errors of one kind have one fingerprint, whatever ids and numbers are in their messages. */
export class ErrorGroups {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The groups with the most failing and dead jobs first. */
  async list(options: ErrorListOptions = {}): Promise<ErrorGroup[]> {
    const what = 'errors.list';
    const { name, queue, state, since, limit = DEFAULT_PAGE } = readOptions(options, optionNames, what);
    return this.#store.errorGroups({
      ...(name === undefined ? {} : { name: checkName(name, `${what}: name`) }),
      ...(queue === undefined ? {} : { queue: checkName(queue, `${what}: queue`) }),
      ...(state === undefined ? {} : { state: checkOneOf(state, groupStates, `${what}: state`) }),
      ...(since === undefined ? {} : { since: readMoment(since, `${what}: since`, this.#clock.now()) }),
      limit: checkInteger(limit, `${what}: limit`, { min: 1, max: LARGEST_PAGE }),
    });
  }

  /** One group, by its fingerprint or the start of it; null when there is none. */
  async show(fingerprint: string): Promise<ErrorGroup | null> {
    return findGroup(this.#store, checkName(fingerprint, 'errors.show'), 'errors.show');
  }

  /**
   * How many runs failed with which kind of error over time, by job name and queue. It outlives jobs and groups.
   * @example const { series } = await mulligan.errors.history({ error: 'e149d4', from: '1h' })
   */
  async history(options: ErrorHistoryOptions = {}): Promise<ErrorHistory> {
    return readErrorHistory(this.#store, options, this.#clock.now());
  }
}

/** The group whose fingerprint is this, or begins so. Several are an error that names some of them. */
export async function findGroup(store: Store, start: string, what: string): Promise<ErrorGroup | null> {
  const found = await store.errorGroups({ fingerprint: start, limit: NAMED + 1 });
  const exact = found.find((group) => group.fingerprint === start);
  if (exact !== undefined || found.length <= 1) return exact ?? found[0] ?? null;
  const named = found.slice(0, NAMED).map((group) => group.fingerprint);
  throw new ConfigError(
    `${what}: expected the fingerprint of one error group, got ${start}, with which several begin (${named.join(', ')}${found.length > NAMED ? ', ...' : ''}). Give more of it.`,
  );
}
