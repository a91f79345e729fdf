import type { Clock } from '../clock.ts';
import { checkInteger, closest, namesOf, readOptions, unexpected } from '../config.ts';
import type { PermitOptions } from '../definition.ts';
import { ConfigError } from '../errors.ts';
import { checkLimitName, type LimitDefinition, readLimitKey } from '../limit/options.ts';
import { Snooze } from '../retry/control-errors.ts';
import type { Store } from '../store/store.ts';
import type { Lease } from './lease.ts';
import { whileLeased } from './persist.ts';

/**
 * A handler waits for a permit up to this long; a longer wait snoozes the job, so that its place is free. But not once its
 * run has taken from a rate, by a permit or by its start: the next run would take that again, and might never get further.
 */
const LONGEST_SLEEP_MS = 1_000;
const optionNames = namesOf<PermitOptions>({ cost: true, key: true });

export interface PermitParts {
  readonly store: Pick<Store, 'permit'>;
  readonly clock: Clock;
  readonly lease: Lease;
  readonly signal: AbortSignal;
  /** The limits of all definitions of the worker. */
  readonly limits: readonly LimitDefinition[];
  /** This run has been granted a permit. */
  readonly hasPermit: boolean;
  readonly onPermit: () => void;
  /** It has to wait. */
  readonly onLimited: (limit: string) => void;
}

/**
 * Takes `cost` starts of a key's rate. Nothing is reserved while it waits: when others are faster, it asks again.
 */
export async function permit(parts: PermitParts, limit: string, options: PermitOptions): Promise<void> {
  const { store, clock, lease, signal, onLimited } = parts;
  const name = knownLimit(limit, parts.limits);
  const { cost, key } = readPermit(options, name, parts);
  const maySnooze = !parts.hasPermit && !lease.job.limits.some((one) => one.limit === name && one.key === key);
  let sleptMs = 0;
  for (;;) {
    signal.throwIfAborted();
    const request = { limit: name, key, cost };
    const { now, startsAt, burst } = await whileLeased([lease], clock, () => store.permit(request));
    if (startsAt === null) return parts.onPermit();
    if (burst !== null && cost > burst) throw tooMuch(name, cost, burst);
    onLimited(name);
    const waitMs = startsAt - now;
    sleptMs += waitMs;
    if (maySnooze && sleptMs > LONGEST_SLEEP_MS) throw new Snooze(waitMs, `Waits for the rate of limit ${name}.`);
    await sleep(clock, waitMs, signal);
  }
}

/** A misspelt limit would bound nothing, unnoticed. */
function knownLimit(limit: unknown, known: readonly LimitDefinition[]): string {
  const name = checkLimitName(limit, "permit: the limit's name");
  const names = known.map((one) => one.name);
  if (names.includes(name)) return name;
  const meant = closest(name, names);
  const hint = meant === null ? 'Add it to a definition: limit: { name, rate }.' : `Did you mean ${meant}?`;
  throw unexpected('permit', 'a limit that a definition of this worker names', name, hint);
}

function readPermit(
  options: PermitOptions,
  name: string,
  { lease, limits }: PermitParts,
): { readonly cost: number; readonly key: string } {
  const { cost = 1, key } = readOptions(options, optionNames, 'permit');
  const given = key === undefined ? ownKey(name, lease, limits) : readLimitKey(key);
  if (given === null) throw unexpected('permit: key', 'a text or a number', key);
  return { cost: checkInteger(cost, 'permit: cost', { min: 1 }), key: given };
}

/** The key of the job itself. Where keys differ and it has none, a guess would let all of them share one rate. */
function ownKey(name: string, { job }: Lease, limits: readonly LimitDefinition[]): string {
  const own = job.limits.find(({ limit }) => limit === name);
  if (own !== undefined) return own.key;
  if (!limits.some((limit) => limit.name === name && limit.key !== null)) return '';
  throw new ConfigError(
    `permit: expected a key, as a function chooses those of limit ${name} and gave this job none. Give it: permit('${name}', { key }).`,
  );
}

function tooMuch(name: string, cost: number, burst: number): ConfigError {
  return new ConfigError(
    `permit: expected a cost of at most the burst of limit ${name}, which is ${burst}, got ${cost}. Raise rate.burst to ${cost} or more, or ask for less at a time.`,
  );
}

function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      timer.cancel();
      reject(signal.reason);
    };
    const timer = clock.after(ms, () => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
