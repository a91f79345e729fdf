import type { Lane } from '../lane.ts';

/*
 * Limits: how many jobs of one key may run at once, and how often they may start.
 *
 * A definition names its limits and says how a key is made of the input. A job carries the names and the keys; what a limit
 * allows is stored once, under its name, and can be changed while workers run. Stores keep, for each key that is in use,
 * which jobs hold it and its rate; the functions of this folder say what follows. They are pure: `now` is an argument.
 */

/** A limit and the key under which a job counts in it. */
export interface LimitKey {
  readonly limit: string;
  /** '' where the definition gives no key: all jobs of the limit count as one. */
  readonly key: string;
}

/** What a limit allows; null for no bound. */
export interface LimitSettings {
  /** How many jobs of one key may run at once. With 1 they run in order: a job that will be retried keeps its key's turn. */
  readonly concurrency: number | null;
  /** How many jobs of all keys together may run at once. */
  readonly total: number | null;
  /** How many jobs of one key may start. */
  readonly rate: Rate | null;
}

/** At most `limit` starts in any window of `perMs`. */
export interface Rate {
  readonly limit: number;
  readonly perMs: number;
  /** So many may start at once after a pause; the others are spread over what is left of the window. */
  readonly burst: number;
}

/** No bound of a limit is higher. */
export const MOST_PER_LIMIT = 1_000_000;
/** Some 300 years. */
const LONGEST_WINDOW_MS = 1e13;

/**
 * A rate that no check took, because something else wrote it into the database, is held to the nearest that one takes: with no
 * space between starts, or none that is a number, a claim would fail for all limits.
 */
function soundRate(rate: Rate): Rate {
  const limit = held(rate.limit, MOST_PER_LIMIT);
  const burst = held(rate.burst, limit);
  const perMs = held(rate.perMs, LONGEST_WINDOW_MS);
  return limit === rate.limit && burst === rate.burst && perMs === rate.perMs ? rate : { limit, perMs, burst };
}

/** Negated, so that what is no number is 1. */
function held(value: number, most: number): number {
  return !(value >= 1) ? 1 : Math.min(Math.floor(value), most);
}

/** What a key has in use, as far as it matters for its limit. */
export interface KeyUse {
  /** Jobs of the key that run. */
  readonly running: number;
  /** Jobs of the key that have run, wait to run again and keep their turn (`keepsTurn`). */
  readonly waiting: number;
  /** Those of `waiting` that are suspects: their trials ask no limit, so their places stay theirs before retries, too. */
  readonly suspects: number;
  /** Jobs of all keys that run, and suspects that wait. */
  readonly total: number;
  /** The earliest time at which the rate would like the next start; see rate.ts. */
  readonly nextStartAt: number;
}

/** What becomes of a job that is enqueued while its key is full; see on-limit.ts. */
export const onLimits = ['wait', 'cancel-oldest', 'cancel-newest'] as const;
export type OnLimit = (typeof onLimits)[number];

/** A limit of a job that does not let it wait when the key is full. */
export interface LimitAction extends LimitKey {
  readonly action: Exclude<OnLimit, 'wait'>;
}

export const unlimited: LimitSettings = { concurrency: null, total: null, rate: null };
/** A job has at most so many limits. */
export const MOST_LIMITS = 4;

/**
 * Whether a job that has run keeps its turn while it waits to run again: no other one of its key starts before it. Decided by
 * the settings with which it was claimed. A suspect always does, because its trial does not ask whether there is room.
 */
export function keepsTurn({ concurrency }: LimitSettings, lane: Lane): boolean {
  return lane === 'suspect' || concurrency === 1;
}

/** What code says of a limit, or of one of its keys. The concurrency is left out where it is computed for each key. */
export interface LimitCode extends Partial<LimitSettings> {
  /** The concurrency that held for all keys before code began to compute it: it holds for keys of which none is stored yet. */
  readonly concurrencyBefore?: number;
}

/** What was said of a limit, or of one of its keys. */
export interface LimitRules {
  /** By definitions, in code; null for nothing. */
  readonly code: LimitCode | null;
  /** By an operator; null for nothing. */
  readonly set: Partial<LimitSettings> | null;
}

/** A rule that is written. */
export interface LimitRule {
  /** Whose rule it is: see `settingsFor`. */
  readonly source: keyof LimitRules;
  /** Null takes it away. */
  readonly settings: LimitCode | null;
  /** What the rule had and these settings leave out stays; else they replace it. Two writes at once lose nothing then. */
  readonly merge?: true;
}

export function rulesAfter(rules: LimitRules, { source, settings, merge }: LimitRule): LimitRules {
  return { ...rules, [source]: merge && settings ? { ...rules[source], ...settings } : settings };
}

/**
 * What holds for a key: what an operator said before what code says, and of each what was said of the key first. A concurrency
 * that code gives for all keys comes before one that was computed for the key: then an older deploy computed it.
 */
export function settingsFor(ofLimit: LimitRules | undefined, ofKey: LimitRules | undefined): LimitSettings {
  const { concurrencyBefore = null, ...code } = ofLimit?.code ?? {};
  const { concurrency = concurrencyBefore, ...codeOfKey } = ofKey?.code ?? {};
  const settings = { ...unlimited, concurrency, ...code, ...codeOfKey, ...ofLimit?.set, ...ofKey?.set };
  return settings.rate === null ? settings : { ...settings, rate: soundRate(settings.rate) };
}

/** The limits of a job as one text, by which its partition is found; '' for none. */
export function limitsText(limits: readonly LimitKey[]): string {
  return limits.length === 0 ? '' : JSON.stringify(limits.map(({ limit, key }) => [limit, key]));
}

export function parseLimits(text: string): readonly LimitKey[] {
  if (text === '') return none;
  return (JSON.parse(text) as [string, string][]).map(([limit, key]) => ({ limit, key }));
}

const none: readonly LimitKey[] = Object.freeze([]);
