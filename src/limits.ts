import { newOrder, type OrderOptions, readOperator } from './audit.ts';
import type { Clock } from './clock.ts';
import { checkName, closest, readOptions, unexpected, unknownName } from './config.ts';
import { ConfigError } from './errors.ts';
import { type LimitSettings, settingsFor } from './limit/limit.ts';
import { checkLimitChange, checkLimitName, type LimitChange, readLimitKey } from './limit/options.ts';
import { type LimitHold, limitHolds } from './observe/limit-holds.ts';
import { limitsNote } from './order-notes.ts';
import type { LimitInfo, LimitKeyInfo, LimitWrite, Store } from './store/store.ts';

const MOST_LIMITS_LISTED = 1_000;
export const KEYS_SHOWN = 50;
/** As a long key is stored. */
const HASHED_KEY = /^sha256:[0-9a-f]{64}$/;

/** A limit, what is said of it, and how much of it is in use. */
export interface LimitSummary extends LimitInfo {
  /** What holds for keys of which nothing else is said. */
  readonly settings: LimitSettings;
}

export interface LimitDetails {
  readonly limit: LimitSummary;
  /** Of keys that are in use or have settings of their own, 50: those set by hand, then those with the most waiting jobs. Or the one that was asked for. */
  readonly keys: readonly LimitKeyInfo[];
}

export interface LimitOrderOptions extends LimitKeyOptions, OrderOptions {}

export interface LimitKeyOptions {
  /** One key, as the definition's `key` function returns it. */
  readonly key?: string | number;
}

type LimitsStore = Pick<Store, 'limits' | 'limitKeys' | 'writeLimits' | 'list' | 'get'>;

/** Limits by hand. What is set holds for jobs that start from now on, in all processes, until `reset`; jobs that run go on. */
export class Limits {
  readonly #store: LimitsStore;
  readonly #clock: Clock;

  constructor(store: LimitsStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** By name. A limit is known from when a process was first opened with a definition that names it, or enqueued a job of one. */
  async list(): Promise<LimitSummary[]> {
    return (await this.#store.limits({ limit: MOST_LIMITS_LISTED })).map(summary);
  }

  /** One limit and its keys; null when there is none of this name. */
  async show(name: string, options: LimitKeyOptions = {}): Promise<LimitDetails | null> {
    const checked = checkLimitName(name, "limits.show: the limit's name");
    const key = readKey(options, 'limits.show');
    const [limit] = await this.#store.limits({ names: [checked], limit: 1 });
    return limit === undefined ? null : this.#details(limit, key);
  }

  /**
   * Changes what a limit allows, or what it allows one key. What is left out stays as it was, also a burst that was chosen;
   * null removes a bound, and with a concurrency or total of 0 nothing starts until it is changed.
   * @example await mulligan.limits.set('shopify', { concurrency: 5 }, { key: 'big-shop.example' })
   */
  async set(name: string, values: LimitChange, options: LimitOrderOptions = {}): Promise<LimitDetails> {
    const order = readOrder(options, 'limits.set');
    const { key } = order;
    return this.#change(name, order, 'limits.set', ({ settings }) => {
      const change = checkLimitChange(values, 'limits.set', settings.rate);
      if (key !== null && change.total !== undefined) {
        throw new ConfigError('limits.set: expected total without a key, as it counts all keys together, got both.');
      }
      return { settings: change, merge: true };
    });
  }

  /** Takes away what was set by hand, of a limit or of one key: what code says holds again. */
  async reset(name: string, options: LimitOrderOptions = {}): Promise<LimitDetails> {
    return this.#change(name, readOrder(options, 'limits.reset'), 'limits.reset', () => ({ settings: null }));
  }

  /** Why a due job does not start, as far as its limits go: those that hold it back, until when, and its place. */
  async holding(id: string): Promise<LimitHold[]> {
    const [job] = await this.#store.get([checkName(id, 'limits.holding')]);
    return job === undefined ? [] : limitHolds(this.#store, job, this.#clock.now());
  }

  async #change(
    name: string,
    { key, by }: LimitOrder,
    what: string,
    change: (before: Pick<LimitSummary, 'settings'>) => Pick<LimitWrite, 'settings' | 'merge'>,
  ): Promise<LimitDetails> {
    const before = await this.#existing(checkLimitName(name, `${what}: the limit's name`), what);
    const ofKey = key === null ? null : (await this.#details(before, key)).keys[0];
    const write: LimitWrite = { limit: name, key, source: 'set', ...change(ofKey ?? summary(before)) };
    await this.#store.writeLimits([write], newOrder(this.#clock, by, limitsNote([write])));
    return this.#details(await this.#existing(name, what), key);
  }

  /** A limit that no definition has named bounds nothing: the name is misspelt, or no process was opened with it yet. */
  async #existing(name: string, what: string): Promise<LimitInfo> {
    const [found] = await this.#store.limits({ names: [name], limit: 1 });
    if (found !== undefined) return found;
    const names = (await this.list()).map((limit) => limit.name);
    const meant = closest(name, names);
    const hint =
      meant === null ? 'It is known once a process was opened with a job that has it.' : `Did you mean ${meant}?`;
    throw unknownName(what, 'the name of a limit', name, hint);
  }

  async #details(limit: LimitInfo, key: string | null): Promise<LimitDetails> {
    if (key === null) {
      return { limit: summary(limit), keys: await this.#store.limitKeys(limit.name, { limit: KEYS_SHOWN }) };
    }
    const [found] = await this.#store.limitKeys(limit.name, { keys: [key], limit: 1 });
    return { limit: summary(limit), keys: [found ?? unusedKey(limit, key)] };
  }
}

function summary(limit: LimitInfo): LimitSummary {
  return { ...limit, settings: settingsFor(limit, undefined) };
}

function unusedKey(limit: LimitInfo, key: string): LimitKeyInfo {
  const settings = settingsFor(limit, undefined);
  return { limit: limit.name, key, code: null, set: null, settings, running: 0, waiting: 0, due: 0, startsAt: null };
}

interface LimitOrder {
  readonly key: string | null;
  readonly by: string;
}

function readOrder(options: LimitOrderOptions, what: string): LimitOrder {
  const { by, ...rest } = readOptions(options, ['key', 'by'], what);
  return { key: readKey(rest, what), by: readOperator(by, what) };
}

function readKey(options: LimitKeyOptions, what: string): string | null {
  const { key } = readOptions(options, ['key'], what);
  if (key === undefined) return null;
  // As it is listed.
  if (typeof key === 'string' && HASHED_KEY.test(key)) return key;
  const stored = readLimitKey(key);
  if (stored === null) throw unexpected(`${what}: key`, 'a text or a number', key);
  return stored;
}
