import { type Clock, nextTurn } from '../clock.ts';
import type { Claim, ClaimRequest, QueueQuota, Store } from '../store/store.ts';
import { Quotas } from './lanes.ts';
import type { WorkPlan } from './options.ts';
import { answerWithin } from './persist.ts';
import { Signal } from './signal.ts';
import { MOST_AHEAD_IN_STORM, Storm } from './storm.ts';

/** Jobs are claimed ahead only as far as they will start within this time: a crash counts against all that is claimed. */
const AHEAD_MS = 50;
/** How many outcomes per place may wait to be recorded before new work is held back. */
const MOST_UNRECORDED = 18;
/** The part of the places that a storm leaves to work that somebody has just made, however many second chances wait here. */
const FOR_NEW_WORK = 0.1;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
const FOREVER_MS = 2 ** 31 - 1;

/** What the fetcher must know of the worker's hands. */
export interface Capacity {
  readonly running: number;
  readonly buffered: number;
  readonly settling: number;
  readonly meanRunMs: number | null;
  /** Nearly all second chances have failed of late. */
  readonly inVain: boolean;
}

export interface FetcherParts {
  readonly store: Pick<Store, 'claim'>;
  readonly clock: Clock;
  readonly plan: WorkPlan;
  readonly worker: string;
  readonly callTimeoutMs: number;
  readonly capacity: () => Capacity;
  /** Takes over what was claimed. */
  readonly accept: (claim: Claim, askedAt: number) => void;
  /** Nothing is left that is due. */
  readonly onDrained: () => void;
  readonly onTrouble: (error: unknown) => void;
  readonly onAnswer: () => void;
}

/**
 * Keeps the worker supplied. One claim is under way at a time:
 *
 *   room -> claim -> filled: look for room again
 *                 -> not filled: wait for a wake-up, the next due time, or the poll
 *                 -> a suspect waits: empty the worker, run it alone
 */
export class Fetcher {
  readonly #parts: FetcherParts;
  readonly #quotas: Quotas;
  readonly #signal: Signal;
  readonly #storm: Storm;
  #stopped = false;
  #drained = false;
  /** A wake-up came while a claim was under way: its answer may already be out of date. */
  #wokenMeanwhile = false;
  #pauseMs = FIRST_PAUSE_MS;
  #noSuspectUntil = 0;
  #wantsRoom = false;
  /** There may be fresh work, which must not wait until a large claim is worth while. */
  #newWork = false;
  #loop: Promise<void> | null = null;

  constructor(parts: FetcherParts) {
    this.#parts = parts;
    this.#quotas = new Quotas(parts.plan.queues);
    this.#signal = new Signal(parts.clock);
    this.#storm = new Storm(parts.clock, () => parts.capacity().inVain);
  }

  /** True when the last claim left places empty. */
  get drained(): boolean {
    return this.#drained;
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** There may be work. */
  wake(): void {
    this.#wokenMeanwhile = true;
    this.#drained = false;
    this.#signal.notify();
  }

  /** Somebody made work. */
  newWork(): void {
    this.#newWork = true;
    this.#storm.newWork();
    this.wake();
  }

  /** A place became free; of interest only while that is what is waited for. */
  room(): void {
    if (this.#wantsRoom) this.#signal.notify();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#signal.notify();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { clock } = this.#parts;
    while (!this.#stopped) {
      const places = this.#places();
      if (places === 0) {
        await this.#waitForRoom(FOREVER_MS);
        // Whatever else ends in this turn makes the next claim larger.
        await nextTurn(clock);
        continue;
      }
      const restMs = this.#newWork ? 0 : this.#storm.restMs();
      if (restMs > 0) {
        await this.#signal.wait(restMs);
        continue;
      }
      const askedAt = clock.monotonic();
      const claim = await this.#claim(places, this.#quotas.next(places));
      if (claim === null) continue;
      this.#quotas.settle(places, claim.jobs);
      this.#storm.claimed(claim.jobs, clock.monotonic() - askedAt);
      this.#drained = claim.jobs.length < places && !this.#wokenMeanwhile;
      if (claim.suspectsWait && clock.monotonic() >= this.#noSuspectUntil) {
        this.#drained = false;
        await this.#runSuspect();
        continue;
      }
      if (!this.#drained || this.#stopped) continue;
      this.#parts.onDrained();
      await this.#signal.wait(this.#untilDue(claim));
    }
  }

  /** How many to claim now; 0 when it is better to wait until more room can be filled at once. */
  #places(): number {
    const { concurrency } = this.#parts.plan;
    const { running, buffered, settling, meanRunMs } = this.#parts.capacity();
    if (settling > MOST_UNRECORDED * concurrency) return 0;
    const soon = meanRunMs === null ? 0 : Math.floor((concurrency * AHEAD_MS) / meanRunMs);
    const capacity = (most: number): number => concurrency + Math.min(soon, concurrency * most);
    const room = (most: number): number => Math.max(0, capacity(most) - running - buffered);
    const most = this.#storm.mostAhead();
    const atOnce = this.#storm.mostAtOnce();
    if (this.#newWork && this.#storm.blows) {
      const forNewWork = Math.min(room(MOST_AHEAD_IN_STORM), Math.ceil(concurrency * FOR_NEW_WORK));
      return Math.min(atOnce, Math.max(room(most), forNewWork));
    }
    return buffered === 0 || room(most) >= capacity(most) / 2 ? Math.min(atOnce, room(most)) : 0;
  }

  #untilDue({ now, nextDueAt }: Claim): number {
    const { pollMs } = this.#parts.plan;
    return nextDueAt === null ? pollMs : Math.max(1, Math.min(pollMs, nextDueAt - now));
  }

  /** Null when the store did not answer; then it has already waited. */
  async #claim(limit: number, queues: QueueQuota[]): Promise<Claim | null> {
    const { store, clock, plan, worker, callTimeoutMs, accept, onAnswer, onTrouble } = this.#parts;
    const request: ClaimRequest = { worker, leaseMs: plan.leaseMs, limit, queues };
    const askedAt = clock.monotonic();
    this.#wokenMeanwhile = false;
    this.#newWork = false;
    const answer = store.claim(request);
    try {
      const claim = await answerWithin(clock, callTimeoutMs, answer);
      accept(claim, askedAt);
      this.#pauseMs = FIRST_PAUSE_MS;
      onAnswer();
      return claim;
    } catch (error) {
      onTrouble(error);
      // Should the answer come after all, its jobs are leased to this worker and to nobody else.
      answer.then((late) => accept(late, askedAt)).catch(() => {});
      if (!this.#stopped) await this.#pause(this.#pauseMs * (0.5 + clock.random()));
      this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
      return null;
    }
  }

  /**
   * A suspect's next crash would bury it, so it gets a fair trial: alone, with nobody else to blame or to harm. Both
   * the wait for an empty worker and the time alone end after one lease, or a slow job would stop the whole worker.
   */
  async #runSuspect(): Promise<void> {
    const { clock, plan, capacity } = this.#parts;
    const patientUntil = clock.monotonic() + plan.leaseMs;
    const busy = (): boolean => capacity().running + capacity().buffered > 0;
    while (busy() && !this.#stopped && clock.monotonic() < patientUntil) {
      await this.#waitForRoom(patientUntil - clock.monotonic());
    }
    if (this.#stopped) return;
    const claim = await this.#claim(1, this.#quotas.suspect());
    if (claim === null || claim.jobs.length === 0) {
      // Another worker was faster, or maxRetriesInFlight holds it back: do not empty this worker for nothing again.
      this.#noSuspectUntil = clock.monotonic() + plan.pollMs;
      return;
    }
    const aloneUntil = clock.monotonic() + plan.leaseMs;
    while (busy() && !this.#stopped && clock.monotonic() < aloneUntil) {
      await this.#waitForRoom(aloneUntil - clock.monotonic());
    }
  }

  async #waitForRoom(timeoutMs: number): Promise<void> {
    this.#wantsRoom = true;
    await this.#signal.wait(timeoutMs);
    this.#wantsRoom = false;
  }

  async #pause(ms: number): Promise<void> {
    const until = this.#parts.clock.monotonic() + ms;
    while (!this.#stopped && this.#parts.clock.monotonic() < until) {
      await this.#signal.wait(until - this.#parts.clock.monotonic());
    }
  }
}
