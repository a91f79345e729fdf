import type { Clock } from '../clock.ts';
import { checkName, checkNumber, namesOf, readOptions } from '../config.ts';
import { DAY_MS } from '../duration.ts';
import { adviseName, type NameAdvice } from './advice.ts';
import { type LedgerStore, readLedger } from './read.ts';

export interface AdviseOptions {
  /** Only jobs of this name. */
  readonly name?: string;
  /** How far back to look. Default 30. */
  readonly days?: number;
}

const optionNames = namesOf<AdviseOptions>({ name: true, days: true });
const DEFAULT_DAYS = 30;

/** What the ledger says about retry policies. */
export interface Advice {
  /** Times in ms since the epoch: jobs that ended from `since` to `now` were read. */
  readonly now: number;
  readonly since: number;
  /** True when the ledger reaches back less far than was asked for, because completed jobs were deleted. */
  readonly isPruned: boolean;
  /** When the first of the jobs that were read ended: a young ledger begins long after `since`. Null when none was read. */
  readonly oldestAt: number | null;
  /** How many jobs were read, and about how many there are. The two differ when a part was drawn. */
  readonly read: number;
  readonly jobs: number;
  readonly isSampled: boolean;
  /** Those whose retries cost the most runs first. */
  readonly names: readonly NameAdvice[];
}

export async function advise(store: LedgerStore, clock: Clock, options: AdviseOptions = {}): Promise<Advice> {
  const given = readOptions(options, optionNames, 'advise');
  const days = checkNumber(given.days ?? DEFAULT_DAYS, 'advise: days', { min: 0.001, max: 3_650 });
  const filter = given.name === undefined ? {} : { name: checkName(given.name, 'advise: name') };
  const { now, since, isPruned, oldestAt, lives, errors, jobs, parts, factor } = await readLedger(store, clock, {
    spanMs: days * DAY_MS,
    ...filter,
  });
  const sample = { factor, parts, spanMs: now - (oldestAt ?? since) };
  const names = [...Map.groupBy(lives, ({ name }) => name)]
    .map(([name, own]) => adviseName(name, own, errors, sample))
    .sort((a, b) => b.retries.runs - a.retries.runs || (a.name < b.name ? -1 : 1));
  return { now, since, isPruned, oldestAt, read: jobs, jobs: Math.round(jobs * factor), isSampled: factor > 1, names };
}
