import type { AnyJobDefinition } from './definition.ts';
import { ConfigError } from './errors.ts';
import { type LimitCode, type LimitKey, limitsText } from './limit/limit.ts';
import type { KeyConcurrency, LimitDefinition } from './limit/options.ts';
import type { LimitOverride, LimitWrite, Store } from './store/store.ts';

/** So many keys are read or written at once, and so many are remembered. */
const KEYS_AT_ONCE = 1_000;
const MOST_REMEMBERED = 10_000;

/**
 * What code says of each limit. The concurrency is left out where it is computed for each key: then what is
 * stored for the key bounds it.
 */
export function limitsInCode(
  definitions: Iterable<Pick<AnyJobDefinition, 'name' | 'limits'>>,
  what: string,
): ReadonlyMap<string, LimitOverride> {
  const found = new Map<string, { readonly job: string; readonly settings: LimitOverride }>();
  for (const { name: job, limits } of definitions) {
    for (const limit of limits) {
      const settings = settingsInCode(limit);
      const other = found.get(limit.name);
      if (other !== undefined && textOf(other.settings) !== textOf(settings)) {
        throw new ConfigError(
          `${what}: expected one meaning of the limit ${limit.name}, got two: ${other.job} says ${wordsOf(other.settings)}, ${job} says ${wordsOf(settings)}. Give it from one constant, or choose another name.`,
        );
      }
      found.set(limit.name, { job, settings });
    }
  }
  return new Map([...found].map(([name, { settings }]) => [name, settings]));
}

function settingsInCode({ settings, concurrencyOf }: LimitDefinition): LimitOverride {
  if (concurrencyOf === null) return settings;
  const { concurrency: _, ...others } = settings;
  return others;
}

/** Stores what code says of limits and of their keys; only what is not stored yet. An operator's settings stay as they are. */
export class LimitWriter {
  readonly #store: Pick<Store, 'limits' | 'limitKeys' | 'writeLimits'>;
  /** By limit and key: the concurrency that is stored, as far as this process knows. */
  readonly #known: Map<string, number> = new Map();

  constructor(store: Pick<Store, 'limits' | 'limitKeys' | 'writeLimits'>) {
    this.#store = store;
  }

  async register(limits: ReadonlyMap<string, LimitOverride>): Promise<void> {
    if (limits.size === 0) return;
    const stored = await this.#store.limits({ names: [...limits.keys()], limit: limits.size });
    const before = new Map(stored.map(({ name, code }) => [name, code]));
    const writes: LimitWrite[] = [];
    for (const [limit, settings] of limits) {
      const old = before.get(limit) ?? null;
      const code = { ...settings, ...concurrencyBefore(settings, old) };
      if (old !== null && textOf(old) === textOf(code)) continue;
      writes.push({ limit, key: null, source: 'code', settings: code });
    }
    if (writes.length > 0) await this.#store.writeLimits(writes);
  }

  /** Of two concurrencies of one key, the later one is meant. */
  async writeConcurrencies(concurrencies: readonly KeyConcurrency[]): Promise<void> {
    const byKey = new Map(concurrencies.map((one) => [limitsText([one]), one]));
    const news = [...byKey].filter(([text, { concurrency }]) => this.#known.get(text) !== concurrency);
    for (let from = 0; from < news.length; from += KEYS_AT_ONCE) {
      const some = news.slice(from, from + KEYS_AT_ONCE).map(([, one]) => one);
      const stored = await this.#stored(some);
      const changed = some.filter((one) => stored.get(limitsText([one])) !== one.concurrency);
      if (changed.length > 0) {
        await this.#store.writeLimits(
          changed.map(({ limit, key, concurrency }) => ({ limit, key, source: 'code', settings: { concurrency } })),
        );
      }
      for (const one of some) this.#remember(one);
    }
  }

  async #stored(concurrencies: readonly LimitKey[]): Promise<ReadonlyMap<string, number | null | undefined>> {
    const names = [...new Set(concurrencies.map(({ limit }) => limit))];
    const found = await Promise.all(
      names.map((limit) => {
        const keys = concurrencies.filter((one) => one.limit === limit).map(({ key }) => key);
        return this.#store.limitKeys(limit, { keys, limit: keys.length });
      }),
    );
    return new Map(found.flat().map((one) => [limitsText([one]), one.code?.concurrency]));
  }

  #remember(one: KeyConcurrency): void {
    if (this.#known.size >= MOST_REMEMBERED) this.#known.clear();
    this.#known.set(limitsText([one]), one.concurrency);
  }
}

/**
 * Code begins to compute the concurrency, at enqueue. Jobs that wait already, and those that processes of an older deploy
 * enqueue meanwhile, must not be without a bound until then.
 */
function concurrencyBefore(
  { concurrency }: LimitOverride,
  old: LimitCode | null,
): Pick<LimitCode, 'concurrencyBefore'> {
  const before = old?.concurrency ?? old?.concurrencyBefore;
  return concurrency !== undefined || before === undefined ? {} : { concurrencyBefore: before };
}

/** A concurrency that is left out is computed for each key: see `settingsInCode`. */
function wordsOf(settings: LimitOverride): string {
  const computed = settings.concurrency === undefined ? ' and a concurrency that is a function of the key' : '';
  return `${textOf(settings)}${computed}`;
}

/** Equal for equal settings: a store need not keep the order of the fields. */
function textOf({ concurrency, total, rate, concurrencyBefore: before }: LimitCode): string {
  const inOrder = rate && { limit: rate.limit, perMs: rate.perMs, burst: rate.burst };
  return JSON.stringify({ concurrency, total, rate: inOrder, before });
}
