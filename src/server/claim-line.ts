import type { Clock, Timer } from '../clock.ts';
import type { Unrecoverable } from '../retry/control-errors.ts';
import {
  CLAIM_BYTES,
  type ClaimedJob,
  type ClaimRequest,
  type KnownJobs,
  type Reader,
  type Store,
} from '../store/store.ts';
import { Quotas } from '../worker/lanes.ts';
import type { WorkPlan } from '../worker/options.ts';
import { decode } from '../worker/versions.ts';
import type { Budgets, Share } from './budget.ts';
import type { Receipt } from './receipt.ts';
import type { RemoteRuns } from './remote-runs.ts';

/*
 * Claims of remote workers, which wait until there is work (long poll).
 *
 * Requests for the same queues form a line. A claim is made for the request that has waited longest. While claims bring
 * jobs, the next requests have their turn, twice as many at once each time: stores commit concurrent calls together. When
 * one brings none, the line rests until the store tells of work, a job falls due, or the poll. So 2,000 waiting workers and a
 * new job cost the store two claims, not 2,000, and a backlog reaches all of them.
 */

/** Claims of one line that are under way at once. */
const MOST_AT_ONCE = 32;

export interface ClaimOrder {
  readonly line: Line;
  readonly worker: string;
  readonly limit: number;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

export interface StartedJob {
  /** With its payload as JSON text that was looked at: the answer takes it as it is. */
  readonly job: ClaimedJob;
  readonly receipt: Receipt;
}

/** What a claim brought, and the share of the budget that its answer is made in. */
export interface Claimed {
  readonly jobs: readonly StartedJob[];
  readonly share: Share | null;
}

const nothing: Claimed = { jobs: [], share: null };

/** What the claims of a line ask for. */
export interface LineTerms {
  readonly plan: WorkPlan;
  /** The names that the workers have handlers for; null for all. */
  readonly names: readonly string[] | null;
}

export interface LineParts {
  readonly runs: RemoteRuns;
  readonly budgets: Budgets;
  readonly maxPayloadBytes: number;
}

interface Waiting {
  readonly order: ClaimOrder;
  readonly answer: (claimed: Claimed) => void;
  readonly fail: (error: unknown) => void;
}

export type ClaimStore = Pick<Store, 'claim' | 'claimGated' | 'claimLimited' | 'onWork'>;

/** What the last ordinary claim said of jobs that it does not take itself. */
interface Elsewhere {
  readonly gated: readonly string[];
  readonly limited: boolean;
  readonly suspects: boolean;
}

const nowhere: Elsewhere = { gated: [], limited: false, suspects: false };

/** Claims of remote workers for the same queues and names, in the order in which they came. */
export class Line {
  readonly #store: ClaimStore;
  readonly #clock: Clock;
  readonly #parts: LineParts;
  readonly #runs: RemoteRuns;
  readonly terms: LineTerms;
  readonly queues: readonly string[];
  /** One for each claim that may be under way: it settles what it was asked for last. */
  readonly #quotas: Quotas[] = [];
  readonly #waiting: Set<Waiting> = new Set();
  #elsewhere: Elsewhere = nowhere;
  #isOtherTurn = false;
  #isClaiming = false;
  #wokenMeanwhile = false;
  #timer: Timer | null = null;
  #restMs = 0;
  #closed = false;

  constructor(store: ClaimStore, clock: Clock, parts: LineParts, terms: LineTerms) {
    this.#store = store;
    this.#clock = clock;
    this.#parts = parts;
    this.#runs = parts.runs;
    this.terms = terms;
    this.queues = terms.plan.queues.map(({ queue }) => queue);
  }

  /** How many queues and names it keeps. */
  get words(): number {
    const { plan, names } = this.terms;
    return plan.queues.length + (names?.length ?? 0);
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0 && !this.#isClaiming;
  }

  claim(order: ClaimOrder): Promise<Claimed> {
    if (order.signal.aborted) return Promise.resolve(nothing);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        timeout.cancel();
        order.signal.removeEventListener('abort', giveUp);
        this.#waiting.delete(waiting);
      };
      const giveUp = (): void => waiting.answer(nothing);
      const waiting: Waiting = {
        order,
        answer: (claimed) => {
          leave();
          resolve(claimed);
        },
        fail: (error) => {
          leave();
          reject(error);
        },
      };
      // One that does not wait is asked for once, however many stand before it.
      const timeout = this.#clock.after(order.waitMs === 0 ? 60_000 : order.waitMs, giveUp);
      order.signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.add(waiting);
      this.wake();
    });
  }

  wake(): void {
    this.#wokenMeanwhile = true;
    if (this.#isClaiming || this.#waiting.size === 0 || this.#closed) return;
    this.#timer?.cancel();
    this.#isClaiming = true;
    void this.#serve();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    for (const waiting of [...this.#waiting]) waiting.answer(nothing);
  }

  /** Until a claim brings nothing. */
  async #serve(): Promise<void> {
    let atOnce = 1;
    while (!this.#closed && this.#waiting.size > 0) {
      this.#wokenMeanwhile = false;
      const isDry = await Promise.all(this.#first(atOnce).map((one, slot) => this.#serveOne(one, slot)));
      if (!isDry.includes(true)) atOnce = Math.min(MOST_AT_ONCE, atOnce * 2);
      else if (this.#wokenMeanwhile) atOnce = 1;
      else break;
    }
    this.#isClaiming = false;
    this.#rest();
  }

  /** Those that have waited longest. */
  #first(count: number): Waiting[] {
    const first: Waiting[] = [];
    for (const waiting of this.#waiting) {
      if (first.push(waiting) === count) break;
    }
    return first;
  }

  /** True when nothing is due for this line. */
  async #serveOne(waiting: Waiting, slot: number): Promise<boolean> {
    let share: Share | null = null;
    try {
      share = await this.#parts.budgets.work(0, this.#mostBytes(waiting.order));
      this.#quotas[slot] ??= new Quotas(this.terms.plan.queues);
      const claimed = await this.#claimFor(waiting.order, this.#quotas[slot]);
      const jobs = await this.#start(claimed);
      // A caller that has hung up meanwhile gets none: they are handed back at once instead of after their lease.
      if (!this.#waiting.has(waiting)) await this.#handBack(jobs);
      else if (jobs.length > 0) {
        waiting.answer({ jobs, share });
        share = null;
      } else if (claimed.length === 0) this.#answerImpatient();
      return claimed.length === 0;
    } catch (error) {
      waiting.fail(error);
      return false;
    } finally {
      share?.release();
    }
  }

  /** A claim ends at CLAIM_BYTES of payload, of which the answer has a copy. */
  #mostBytes({ limit }: ClaimOrder): number {
    return 2 * Math.min(CLAIM_BYTES, limit * this.#parts.maxPayloadBytes);
  }

  #answerImpatient(): void {
    for (const one of [...this.#waiting]) if (one.order.waitMs === 0) one.answer(nothing);
  }

  async #handBack(started: readonly StartedJob[]): Promise<void> {
    const outcome = { kind: 'released', because: { kind: 'shutdown' } } as const;
    await Promise.all(started.map(({ receipt }) => this.#runs.settle(receipt, outcome)));
  }

  async #start(claimed: readonly ClaimedJob[]): Promise<StartedJob[]> {
    const { names, plan } = this.terms;
    const { leaseMs, unknownJobTimeoutMs } = plan;
    const started = await Promise.all(
      claimed.map(async (job): Promise<StartedJob | null> => {
        if (names !== null && !names.includes(job.name)) {
          await this.#runs.returnUnknown(job, leaseMs, unknownJobTimeoutMs);
          return null;
        }
        const receipt = await this.#runs.start(job, leaseMs);
        if (receipt === null || !(await this.#isReadable(job.payload, receipt))) return null;
        return { job: { ...receipt.job, payload: job.payload }, receipt };
      }),
    );
    return started.filter((one) => one !== null);
  }

  /** A job whose payload no answer can carry is dead, as a worker would have it; those beside it start. */
  async #isReadable(payload: string, receipt: Receipt): Promise<boolean> {
    try {
      decode(payload);
      return true;
    } catch (error) {
      await this.#runs.settle(receipt, this.#runs.unreadable(receipt, error as Unrecoverable));
      return false;
    }
  }

  /** Jobs behind gates and limits, and suspects, go first every other time: ordinary ones must not starve them. */
  async #claimFor(order: ClaimOrder, quotas: Quotas): Promise<readonly ClaimedJob[]> {
    this.#isOtherTurn = !this.#isOtherTurn;
    if (this.#isOtherTurn) {
      const first = await this.#claimElsewhere(order, order.limit, quotas);
      if (first.length > 0) return first;
    }
    const ordinary = await this.#claimOrdinary(order, quotas);
    const left = order.limit - ordinary.length;
    return left === 0 || isFull(ordinary)
      ? ordinary
      : [...ordinary, ...(await this.#claimElsewhere(order, left, quotas))];
  }

  async #claimOrdinary({ limit, worker }: ClaimOrder, quotas: Quotas): Promise<readonly ClaimedJob[]> {
    const claim = await this.#store.claim(this.#request(worker, limit, quotas));
    quotas.settle(limit, claim.jobs);
    this.#runs.heard(claim.now);
    this.#elsewhere = { gated: claim.gated, limited: claim.limited, suspects: claim.suspectsWait };
    this.#restMs = restOf(claim.nextDueAt, claim.now, this.terms.plan.pollMs);
    return claim.jobs;
  }

  async #claimElsewhere({ worker }: ClaimOrder, limit: number, quotas: Quotas): Promise<readonly ClaimedJob[]> {
    const { gated, limited, suspects } = this.#elsewhere;
    const jobs: ClaimedJob[] = [];
    for (const resource of gated) {
      if (jobs.length >= limit || isFull(jobs)) break;
      const claim = await this.#store.claimGated({ ...this.#request(worker, limit - jobs.length, quotas), resource });
      this.#restMs = Math.min(this.#restMs, restOf(claim.nextAt, claim.now, this.terms.plan.pollMs));
      jobs.push(...claim.jobs);
    }
    if (limited && jobs.length < limit && !isFull(jobs)) {
      const claim = await this.#store.claimLimited(this.#request(worker, limit - jobs.length, quotas));
      this.#restMs = Math.min(this.#restMs, restOf(claim.nextAt, claim.now, this.terms.plan.pollMs));
      jobs.push(...claim.jobs);
    }
    // A suspect is claimed alone: what else runs beside it in its worker is for the worker to know.
    if (!suspects || jobs.length > 0) return jobs;
    return (await this.#store.claim({ ...this.#request(worker, 1, quotas), queues: quotas.suspect() })).jobs;
  }

  #request(worker: string, limit: number, quotas: Quotas): ClaimRequest {
    const { plan, names } = this.terms;
    return { worker, leaseMs: plan.leaseMs, limit, queues: quotas.next(limit), ...readerOf(names) };
  }

  #rest(): void {
    this.#timer?.cancel();
    if (this.#waiting.size === 0 || this.#closed) return;
    this.#timer = this.#clock.after(this.#restMs, () => this.wake());
  }
}

/** Each claim of the store ends there; several make one answer. */
function isFull(jobs: readonly ClaimedJob[]): boolean {
  return jobs.reduce((bytes, { payload }) => bytes + payload.length, 0) >= CLAIM_BYTES;
}

const LATEST = 2 ** 31 - 1;

/** Without versions, a worker is taken to know the latest. */
function readerOf(names: readonly string[] | null): Reader {
  if (names === null) return {};
  const knows: KnownJobs = new Map(names.map((name) => [name, LATEST]));
  return { knows };
}

function restOf(nextAt: number | null, now: number, pollMs: number): number {
  return nextAt === null ? pollMs : Math.max(1, Math.min(pollMs, nextAt - now));
}
