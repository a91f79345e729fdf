import type { Clock } from '../clock.ts';
import type { RetryPolicy } from '../retry/policy.ts';
import { pause } from '../retrying.ts';
import type { LedgerJob, LedgerPage } from '../store/ledger.ts';
import type { Store, StoreStats } from '../store/store.ts';
import type { Errors } from './classification.ts';
import { type Life, livesOf } from './lives.ts';

/*
 * Reads a ledger for advice, beside workers that must not notice: bounded in jobs and in time, in small statements with pauses
 * between them. A ledger of more than MOST_WHOLE jobs is not read as a whole: parts of it are drawn.
 */

export type LedgerStore = Pick<Store, 'ledger' | 'stats' | 'count'>;

/** So many are read in order, and all of them. */
const MOST_WHOLE = 20_000;
/** So many are drawn from a larger ledger: enough for a share to be known within 0.5 in 100. */
const MOST_READ = 50_000;
const PAGE = 2_000;
/** More than MOST_READ needs: of a rare name, or of the last day of a long ledger, each draw gives few jobs. */
const MOST_DRAWS = 250;
/** A page is followed by a pause that is so many times as long as the page took. */
const PAUSES_PER_PAGE = 8;
/** What has not been read by then is left out. */
const LONGEST_MS = 15_000;

export interface ReadLedger {
  /** Store time when reading began. */
  readonly now: number;
  /** Jobs that ended from here on were read. */
  readonly since: number;
  /** Why the ledger does not reach back as far as was asked for. */
  readonly isPruned: boolean;
  /** When the first of the jobs that were read ended; null when there was none. */
  readonly oldestAt: number | null;
  readonly lives: readonly Life[];
  readonly errors: Errors;
  /** Jobs that were read. */
  readonly jobs: number;
  /** How many jobs were read of each part that was drawn. */
  readonly parts: ReadonlyMap<number | null, number>;
  /** How many times more jobs there are than were read: 1 when all were. */
  readonly factor: number;
}

export async function readLedger(
  store: LedgerStore,
  clock: Clock,
  { spanMs, name }: { readonly spanMs: number; readonly name?: string },
): Promise<ReadLedger> {
  const oldest = await store.ledger({ since: 0, limit: 1 });
  const stats = await store.stats();
  const { now } = stats;
  const isPruned = completedPruned(stats, name) > 0;
  // Completed jobs are deleted before dead ones. Where they are gone, the dead ones alone would say that nothing succeeds.
  const since = Math.max(now - spanMs, isPruned ? (oldestCompleted(oldest) ?? now) : 0);
  const collected = new Collected();
  const filter = name === undefined ? { since } : { since, name };
  const counts = await Promise.all(
    (['completed', 'dead'] as const).map((state) => store.count({ state, since, limit: MOST_WHOLE + 1 })),
  );
  const ended = counts.reduce((sum, { count }) => sum + count, 0);
  const paced = new Paced(clock);
  if (ended <= MOST_WHOLE) {
    for (let after: string | null | undefined; after !== null; ) {
      const from = after === undefined ? {} : { after };
      const page = await paced.read(() => store.ledger({ ...filter, limit: PAGE, ...from }));
      collected.add(page);
      after = page.next;
    }
  } else {
    for (let draw = 0; collected.read < MOST_READ && draw < MOST_DRAWS && !paced.isOver; draw++) {
      collected.add(await paced.read(() => store.ledger({ ...filter, limit: PAGE, draw, until: now })));
    }
  }
  const total = stats.rows.reduce((sum, { states }) => sum + states.completed + states.dead, 0);
  const factor = ended <= MOST_WHOLE ? 1 : Math.max(1, total / Math.max(1, collected.different));
  const { lives, errors, jobs, parts, oldestAt } = collected;
  return {
    now,
    since,
    isPruned: isPruned && since > now - spanMs,
    oldestAt,
    lives,
    errors,
    jobs: jobs.size,
    parts,
    factor,
  };
}

/** Totals survive pruning, and the number of completed jobs does not. */
function completedPruned({ rows }: StoreStats, name: string | undefined): number {
  return rows
    .filter((row) => name === undefined || row.name === name)
    .reduce((sum, { totals, states }) => sum + totals.runs.completed - states.completed, 0);
}

/** The first page begins with the completed job that ended first. */
function oldestCompleted({ jobs: [first] }: LedgerPage): number | null {
  return first?.state === 'completed' ? first.finishedAt : null;
}

/** The jobs of several pages, each once: two draws may meet. */
class Collected {
  readonly lives: Life[] = [];
  readonly errors: Record<string, Errors[string]> = {};
  readonly jobs: Set<string> = new Set();
  readonly parts: Map<number | null, number> = new Map();
  oldestAt: number | null = null;
  looked = 0;
  #repeated = 0;

  add({ jobs, policies, errors, looked }: LedgerPage): void {
    this.looked += looked;
    Object.assign(this.errors, errors);
    for (const job of jobs) this.#addJob(job, policies);
  }

  /** Jobs that were read, those included that were read twice. */
  get read(): number {
    return this.jobs.size + this.#repeated;
  }

  /** How many jobs were looked at, each counted once, as far as those that were read tell. */
  get different(): number {
    return this.read === 0 ? this.looked : (this.looked * this.jobs.size) / this.read;
  }

  #addJob(job: LedgerJob, policies: readonly RetryPolicy[]): void {
    if (this.jobs.has(job.id)) {
      this.#repeated++;
      return;
    }
    this.jobs.add(job.id);
    this.oldestAt = Math.min(this.oldestAt ?? job.finishedAt, job.finishedAt);
    this.parts.set(job.part, (this.parts.get(job.part) ?? 0) + 1);
    this.lives.push(...livesOf(job, policies[job.policy] as RetryPolicy));
  }
}

/** Statements with pauses between them, so that workers beside them keep most of the database. */
class Paced {
  readonly #clock: Clock;
  readonly #startedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  get isOver(): boolean {
    return this.#clock.monotonic() - this.#startedAt > LONGEST_MS;
  }

  async read<Answer>(statement: () => Promise<Answer>): Promise<Answer> {
    const from = this.#clock.monotonic();
    const answer = await statement();
    const tookMs = this.#clock.monotonic() - from;
    // On a clock that stands still, a pause would never end.
    if (tookMs > 0) await pause(this.#clock, PAUSES_PER_PAGE * tookMs);
    return answer;
  }
}
