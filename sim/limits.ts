import { type LimitSettings, type OnLimit, onLimits } from '../src/limit/limit.ts';
import type { LimitOptions } from '../src/limit/options.ts';
import type { LimitWrite } from '../src/store/store.ts';
import type { Script } from './jobs.ts';
import type { Random } from './random.ts';

/** A limit that some of the jobs stand behind, with few keys. */
export interface SimLimit {
  readonly name: string;
  /** Jobs of these names count in it. */
  readonly names: readonly string[];
  /** What of a script gives the key. */
  readonly by: 'times' | 'ms';
  readonly keys: number;
  readonly settings: LimitSettings;
  readonly onLimit: OnLimit;
}

/** What a scenario has to do with limits. */
export interface SimLimits {
  readonly limits: readonly SimLimit[];
  /** How often an operator changes a setting. */
  readonly changesPerSecond: number;
}

const noLimits: SimLimits = { limits: [], changesPerSecond: 0 };

export function randomLimits(random: Random, names: readonly string[]): SimLimits {
  if (random.chance(0.6)) return noLimits;
  const limits = (['times', 'ms'] as const).slice(0, random.whole(1, 2)).map((by) => ({
    name: `limit-by-${by}`,
    names: names.filter(() => random.chance(0.7)),
    by,
    keys: random.whole(1, 3),
    settings: randomSettings(random),
    onLimit: 'wait' as const,
  }));
  return { limits, changesPerSecond: random.chance(0.5) ? 0 : random.next() * 0.5 };
}

/** In some scenarios jobs do not wait behind full keys. */
export function withOnLimit(all: SimLimits, random: Random): SimLimits {
  if (random.chance(0.6)) return all;
  return { ...all, limits: all.limits.map((one) => ({ ...one, onLimit: random.pick(onLimits) })) };
}

function randomSettings(random: Random): LimitSettings {
  return {
    concurrency: random.chance(0.5) ? 1 : random.whole(2, 3),
    total: random.chance(0.4) ? random.whole(1, 4) : null,
    rate: random.chance(0.4) ? randomRate(random) : null,
  };
}

function randomRate(random: Random): NonNullable<LimitSettings['rate']> {
  const limit = random.whole(1, 6);
  return { limit, perMs: random.pick([300, 1_000, 2_000]), burst: random.whole(1, limit) };
}

/** The limits of one definition, as code gives them. */
export function limitOptionsOf({ limits }: SimLimits, jobName: string): LimitOptions<Script>[] {
  return limits
    .filter(({ names }) => names.includes(jobName))
    .map((limit) => {
      const { concurrency, total, rate } = limit.settings;
      return {
        name: limit.name,
        key: (script) => keyOf(limit, script),
        ...(concurrency !== null && { concurrency, onLimit: limit.onLimit }),
        ...(total !== null && { total }),
        ...(rate !== null && { rate: { limit: rate.limit, per: rate.perMs, burst: rate.burst } }),
      };
    });
}

function keyOf({ by, keys }: SimLimit, script: Script): string {
  return `key ${script[by] % keys}`;
}

/** What an operator says of a limit or of one of its keys; now and then, that he has nothing to say any more. */
export function randomWrite({ limits }: SimLimits, random: Random): LimitWrite {
  const { name, keys } = random.pick(limits);
  const { concurrency, total, rate } = randomSettings(random);
  const said = [{ concurrency }, { concurrency }, { rate }, { concurrency, rate }, null];
  if (random.chance(0.4)) {
    return { limit: name, key: `key ${random.whole(0, keys - 1)}`, source: 'set', settings: random.pick(said) };
  }
  return { limit: name, key: null, source: 'set', settings: random.pick([...said, { total }]) };
}
