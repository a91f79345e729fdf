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
  /** Limits of which something is stored, as far as this process knows. */
  readonly #stored: Set<string> = new Set();
  /** By name: limits that are being stored. */
  readonly #adding: Map<string, Promise<void>> = new Map();

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
    for (const name of limits.keys()) this.#stored.add(name);
  }

  /** Whether some of these limits have to be added before jobs that stand behind them. */
  lacks(limits: readonly LimitDefinition[]): boolean {
    return limits.some(({ name }) => !this.#stored.has(name));
  }

  /**
   * Stores limits of definitions that the queue was not opened with: until a process is, nothing would bound their jobs. What
   * is stored already stays, because the process that opened last decides.
   */
  async add(limits: readonly LimitDefinition[]): Promise<void> {
    const missing = limits.filter(({ name }) => !this.#stored.has(name));
    await Promise.all(missing.map((limit) => this.#adding.get(limit.name) ?? this.#startAdding(limit)));
  }

  /** Enqueues of the same moment wait for one write, and go on in their order. */
  #startAdding(limit: LimitDefinition): Promise<void> {
    const { name } = limit;
    const adding = this.#addMissing(name, settingsInCode(limit)).finally(() => this.#adding.delete(name));
    this.#adding.set(name, adding);
    return adding;
  }

  async #addMissing(limit: string, settings: LimitOverride): Promise<void> {
    const [stored] = await this.#store.limits({ names: [limit], limit: 1 });
    if (stored === undefined || stored.code === null) {
      await this.#store.writeLimits([{ limit, key: null, source: 'code', settings }]);
    }
    this.#stored.add(limit);
  }

  /** Of two concurrencies of one key, the later one is meant. */
  async writeConcurrencies(concurrencies: readonly KeyConcurrency[]): Promise<void> {
    const byKey = new Map(concurrencies.map((one) => [limitsText([one]), one]));
    const news = [...byKey].filter(([text, { concurrency }]) => this.#known.get(text) !== concurrency);
    for (let from = 0; from < news.length; from += KEYS_AT_ONCE) {
      const some = news.slice(from, from + KEYS_AT_ONCE).map(([, one]) => one);
      const stored = await this.#read(some);
      const changed = some.filter((one) => stored.get(limitsText([one])) !== one.concurrency);
      if (changed.length > 0) {
        await this.#store.writeLimits(
          changed.map(({ limit, key, concurrency }) => ({ limit, key, source: 'code', settings: { concurrency } })),
        );
      }
      for (const one of some) this.#remember(one);
    }
  }

  async #read(concurrencies: readonly LimitKey[]): Promise<ReadonlyMap<string, number | null | undefined>> {
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
