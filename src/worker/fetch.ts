import { type Clock, nextTurn } from '../clock.ts';
import type { GateEvent } from '../gate/index.ts';
import type { ClaimKind } from '../observe/metrics.ts';
import { doubling, Pauses } from '../retrying.ts';
import type {
  Claim,
  ClaimedJob,
  GatedClaim,
  GateRef,
  KnownJobs,
  LimitedClaim,
  QueueQuota,
  Reader,
  Store,
} from '../store/store.ts';
import { Quotas } from './lanes.ts';
import type { WorkPlan } from './options.ts';
import { answerWithin } from './persist.ts';
import type { Load, Prefetch } from './prefetch.ts';
import type { Rejections } from './rejections.ts';
import { Signal } from './signal.ts';

const FOREVER_MS = 2 ** 31 - 1;

/**
 * Why the fetcher should look again:
 * - `new-work`: jobs were enqueued, here or elsewhere.
 * - `due`: a job of this worker was settled and waits again; it may fall due before all others.
 * - `retry-ended`: a queue may have room for a retry again, under maxRetriesInFlight, or for the next suspect.
 * - `limit-freed`: a key may have room again.
 * - `room`: a place became free. It matters only while the fetcher waits for one.
 */
export type WakeReason = 'new-work' | 'due' | 'retry-ended' | 'limit-freed' | 'room';

export interface FetcherParts {
  readonly store: Pick<Store, 'claim' | 'claimGated' | 'claimLimited'>;
  readonly clock: Clock;
  readonly plan: WorkPlan;
  readonly worker: string;
  readonly knows: KnownJobs;
  readonly rejections: Pick<Rejections, 'avoided' | 'untilNext'>;
  readonly callTimeoutMs: number;
  readonly prefetch: Prefetch;
  readonly load: () => Load;
  /** Takes over what was claimed. */
  readonly accept: (claim: Pick<Claim, 'jobs'>, askedAt: number) => void;
  /** Whether this worker may take a suspect now. */
  readonly canTry: () => boolean;
  /** Holds the trial of a suspect; nothing is claimed until it resolves. */
  readonly tryOut: (suspect: ClaimedJob, askedAt: number) => Promise<void>;
  /** A claim has changed a gate. */
  readonly onGate: (gate: GateRef, events: readonly GateEvent[]) => void;
  /** These limits keep due jobs from starting. */
  readonly onLimited: (limits: readonly string[]) => void;
  /** Nothing is left that is due. */
  readonly onDrained: () => void;
  /** The store failed to answer, or our own code failed. */
  readonly onError: (error: unknown) => void;
  /** The store has answered a claim. */
  readonly onAnswer: (claim: ClaimKind, durationMs: number) => void;
}

interface Answer<Claimed> {
  readonly claim: Claimed;
  /** By the worker's own clock, before the store was asked. */
  readonly askedAt: number;
}

/**
 * Keeps the worker supplied. One claim is under way at a time:
 *
 *   room -> claim -> filled, or the store has more: look for room again
 *                 -> not filled: wait for a wake-up, the next due time, or the poll
 *                 -> a suspect waits: claim it and hold its trial, and so on for up to a lease; then look for room again
 *                 -> jobs wait behind gates: each gate is asked before the next ordinary claim, for a part of the room
 *                 -> jobs wait behind limits: they are claimed before the next ordinary claim, too; ahead only while that
 *                    brings as many as it asks for, since each that is claimed takes a place of its key
 */
export class Fetcher {
  readonly #parts: FetcherParts;
  readonly #quotas: Quotas;
  /** Credit is owed by claims of one kind: in another, other queues and lanes may have work. */
  readonly #limitedQuotas: Quotas;
  readonly #signal: Signal;
  readonly #pauses: Pauses;
  #stopped = false;
  #drained = false;
  /** A wake-up came while a claim was under way: its answer may already be out of date. */
  #wokenMeanwhile = false;
  /** Another worker took the suspect that the last claim had announced; until then this one does not ask again. */
  #noTrialUntil = Number.NEGATIVE_INFINITY;
  /** What the last claim said of gates, and when a gate that admitted nothing may be asked again. */
  #gated: readonly string[] = [];
  readonly #notBefore: Map<string, number> = new Map();
  /** Of these gates no job could start, whatever the gate said: limits held all that were due. */
  readonly #withoutJob: Set<string> = new Set();
  /** Whether jobs wait behind limits, and when one of them may start, as far as is known. */
  #hasLimited = false;
  #limitedAt = Number.NEGATIVE_INFINITY;
  /** The last claim of them was filled. */
  #hasManyLimited = false;
  /** It left no place for an ordinary claim, which comes first the next time. */
  #isOrdinaryNext = false;
  /** Until then, or until it is woken, an ordinary claim would bring nothing. */
  #nothingUntil = Number.NEGATIVE_INFINITY;
  /** The last ordinary claim brought nothing. */
  #isIdle = true;
  #waitsForRoom = false;
  #loop: Promise<void> | null = null;

  constructor(parts: FetcherParts) {
    this.#parts = parts;
    this.#quotas = new Quotas(parts.plan.queues);
    this.#limitedQuotas = new Quotas(parts.plan.queues);
    this.#signal = new Signal(parts.clock);
    this.#pauses = new Pauses(doubling(100, 2_000), () => parts.clock.random());
  }

  /** True when the last claim left places empty. */
  get drained(): boolean {
    return this.#drained;
  }

  start(): void {
    this.#loop = this.#run();
  }

  wake(reason: WakeReason): void {
    if (reason === 'room') {
      if (this.#waitsForRoom) this.#signal.notify();
      return;
    }
    if (reason === 'new-work') this.#parts.prefetch.newWork();
    if (reason !== 'limit-freed') this.#nothingUntil = Number.NEGATIVE_INFINITY;
    this.#wokenMeanwhile = true;
    this.#drained = false;
    this.#noTrialUntil = Number.NEGATIVE_INFINITY;
    this.#limitedAt = Number.NEGATIVE_INFINITY;
    this.#lookForJobs();
    this.#signal.notify();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#signal.notify();
    await this.#loop;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#fetch();
      } catch (error) {
        this.#parts.onError(error);
        await this.#pause();
      }
    }
  }

  async #fetch(): Promise<void> {
    const { clock, prefetch, load, accept, onDrained } = this.#parts;
    const places = prefetch.places(load());
    if (places === 0) {
      await this.#waitForRoom();
      // Jobs that end in the same turn make the next claim larger.
      await nextTurn(clock);
      return;
    }
    this.#wokenMeanwhile = false;
    await this.#claimGated(places);
    const isFilled = !this.#isOrdinaryNext && this.#untilLimited() === 0 && (await this.#claimLimited());
    if (isFilled && clock.monotonic() < this.#nothingUntil) return;
    const left = prefetch.places(load());
    this.#isOrdinaryNext = left === 0;
    if (left === 0 || this.#stopped) return;
    prefetch.asked();
    const answer = await this.#claim(left, this.#quotas.next(left));
    if (answer === null) return;
    const { claim, askedAt } = answer;
    accept(claim, askedAt);
    this.#quotas.settle(left, claim.jobs);
    prefetch.claimed(claim.jobs);
    this.#gated = claim.gated;
    this.#hasLimited = claim.limited;
    this.#isIdle = claim.jobs.length === 0;
    if (this.#isIdle && !this.#wokenMeanwhile) this.#nothingUntil = clock.monotonic() + this.#untilDue(claim);
    if (claim.suspectsWait && (await this.#holdTrials())) return;
    const waitMs = claim.jobs.length < left ? this.#untilNext(claim) : 0;
    this.#drained = waitMs > 0 && !this.#wokenMeanwhile;
    if (!this.#drained || this.#stopped) return;
    onDrained();
    this.#waitsForRoom = this.#hasLimited && this.#atOnce() === 0;
    await this.#signal.wait(waitMs);
    this.#waitsForRoom = false;
    // Perhaps the job has fallen due that keeps the turn of its key.
    this.#lookForJobs();
  }

  #lookForJobs(): void {
    for (const resource of this.#withoutJob) this.#notBefore.delete(resource);
    this.#withoutJob.clear();
  }

  #untilNext(claim: Claim): number {
    return Math.min(
      this.#untilDue(claim),
      this.#untilGated(),
      this.#untilLimited(),
      this.#parts.rejections.untilNext(),
    );
  }

  /** 0 when the store has more that is due, which did not fit into its answer. */
  #untilDue({ jobs, now, nextDueAt }: Claim): number {
    const { pollMs } = this.#parts.plan;
    if (nextDueAt === null) return pollMs;
    const shortestMs = jobs.length > 0 ? 0 : 1;
    return Math.max(shortestMs, Math.min(pollMs, nextDueAt - now));
  }

  /** Asks each gate that the last claim named, for up to half of the places: ordinary jobs get the others. */
  async #claimGated(places: number): Promise<void> {
    const { store, plan, worker, accept, onGate } = this.#parts;
    const resources = this.#gated.filter((resource) => this.#untilAsked(resource) === 0);
    const limit = Math.max(1, Math.ceil(places / 2 / resources.length));
    this.#gated = [];
    for (const resource of resources) {
      const request = {
        worker,
        leaseMs: plan.leaseMs,
        limit,
        queues: this.#quotas.next(limit),
        resource,
        ...this.#reader(),
      };
      const answer = await this.#ask('gated', store.claimGated(request));
      if (answer === null || this.#stopped) return;
      const { claim, askedAt } = answer;
      accept(claim, askedAt);
      if (claim.events.length > 0) onGate({ kind: 'resource', name: resource }, claim.events);
      this.#remember(resource, claim);
    }
  }

  /**
   * Claims jobs behind limits, for up to half of the places: ordinary jobs get the others, and the next round the rest. True
   * when it got as many as it asked for.
   */
  async #claimLimited(): Promise<boolean> {
    const { store, plan, worker, clock, accept, onLimited } = this.#parts;
    if (this.#stopped) return false;
    const atOnce = this.#atOnce();
    const places = this.#limitedPlaces();
    const limit = this.#isIdle ? places : Math.ceil(places / 2);
    const queues = this.#limitedQuotas.next(limit);
    const ahead = Math.max(0, limit - atOnce);
    const request = { worker, leaseMs: plan.leaseMs, limit, queues, ahead, ...this.#reader() };
    const answer = await this.#ask('limited', store.claimLimited(request));
    if (answer === null) return false;
    const { claim, askedAt } = answer;
    accept(claim, askedAt);
    this.#limitedQuotas.settle(limit, claim.jobs);
    this.#hasManyLimited = claim.jobs.length === limit;
    // Where the places are filled in which jobs start at once, what it says of the next job may be said of one to claim ahead.
    const waitMs = claim.jobs.length >= atOnce ? 0 : this.#untilNextLimited(claim);
    this.#limitedAt = clock.monotonic() + waitMs;
    if (claim.full !== undefined) onLimited(claim.full);
    return this.#hasManyLimited;
  }

  #limitedPlaces(): number {
    const { prefetch, load } = this.#parts;
    return this.#hasManyLimited ? Math.max(this.#atOnce(), prefetch.places(load())) : this.#atOnce();
  }

  #atOnce(): number {
    const { prefetch, load } = this.#parts;
    return prefetch.atOnce(load());
  }

  /** A place of a key that another worker frees is noticed at the latest by the next poll. */
  #untilNextLimited({ jobs, now, nextAt }: LimitedClaim): number {
    const { pollMs } = this.#parts.plan;
    const shortestMs = jobs.length > 0 ? 0 : 1;
    return nextAt === null ? pollMs : Math.min(pollMs, Math.max(shortestMs, nextAt - now));
  }

  /** A worker without a free place waits for one: it claims ordinary jobs ahead meanwhile, and must not ask again and again. */
  #untilLimited(): number {
    if (!this.#hasLimited || this.#limitedPlaces() === 0) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#limitedAt - this.#parts.clock.monotonic());
  }

  /**
   * A gate that admitted nothing is not asked again before it may admit something to this worker. That time holds while the
   * gate stays as it is: when it says that a probe keeps its slot for half a minute, the probe may have ended by now.
   */
  #remember(resource: string, { jobs, now, nextAt }: GatedClaim): void {
    if (nextAt === null) this.#withoutJob.add(resource);
    if (jobs.length > 0) this.#notBefore.delete(resource);
    else {
      const { pollMs } = this.#parts.plan;
      const waitMs = nextAt === null ? pollMs : Math.max(1, Math.min(pollMs, nextAt - now));
      this.#notBefore.set(resource, this.#parts.clock.monotonic() + waitMs);
    }
  }

  /** How long until the first of the gates may be asked that the last claim named. */
  #untilGated(): number {
    return this.#gated.reduce(
      (least, resource) => Math.min(least, this.#untilAsked(resource)),
      Number.POSITIVE_INFINITY,
    );
  }

  #untilAsked(resource: string): number {
    const at = this.#notBefore.get(resource);
    if (at === undefined) return 0;
    const waitMs = at - this.#parts.clock.monotonic();
    if (waitMs > 0) return waitMs;
    this.#notBefore.delete(resource);
    return 0;
  }

  #claim(limit: number, queues: QueueQuota[]): Promise<Answer<Claim> | null> {
    const { store, plan, worker } = this.#parts;
    return this.#ask('ordinary', store.claim({ worker, leaseMs: plan.leaseMs, limit, queues, ...this.#reader() }));
  }

  #reader(): Reader {
    const { knows, rejections } = this.#parts;
    const avoids = rejections.avoided();
    return avoids === undefined ? { knows } : { knows, avoids };
  }

  /** Null when the store did not answer; then it has already waited. */
  async #ask<Claimed extends Pick<Claim, 'jobs'>>(
    kind: ClaimKind,
    call: Promise<Claimed>,
  ): Promise<Answer<Claimed> | null> {
    const { clock, callTimeoutMs, accept, onAnswer, onError } = this.#parts;
    // Nothing has been awaited since the call was made.
    const askedAt = clock.monotonic();
    let claim: Claimed;
    try {
      claim = await answerWithin(clock, callTimeoutMs, call);
    } catch (error) {
      onError(error);
      // Should the answer come after all, its jobs are leased to this worker and to no other.
      call
        .then(
          (late) => accept(late, askedAt),
          () => {},
        )
        .catch(onError);
      await this.#pause();
      return null;
    }
    this.#pauses.reset();
    onAnswer(kind, clock.monotonic() - askedAt);
    return { claim, askedAt };
  }

  /**
   * Tries suspects one after the other, for up to a lease: emptying the worker is what costs. Answers false when there was
   * none to try.
   */
  async #holdTrials(): Promise<boolean> {
    const { clock, plan, canTry, tryOut } = this.#parts;
    const startedAt = clock.monotonic();
    if (startedAt < this.#noTrialUntil) return false;
    let tried = false;
    while (!this.#stopped && canTry() && clock.monotonic() < startedAt + plan.leaseMs) {
      const answer = await this.#claim(1, this.#quotas.suspect());
      const suspect = answer?.claim.jobs[0];
      if (answer === null || suspect === undefined) break;
      this.#drained = false;
      tried = true;
      await tryOut(suspect, answer.askedAt);
    }
    if (!tried) this.#noTrialUntil = clock.monotonic() + plan.pollMs;
    return tried;
  }

  async #waitForRoom(): Promise<void> {
    this.#waitsForRoom = true;
    await this.#signal.wait(FOREVER_MS);
    this.#waitsForRoom = false;
  }

  /** After a failure; only a stop ends it early. */
  async #pause(): Promise<void> {
    const { clock } = this.#parts;
    const until = clock.monotonic() + this.#pauses.next();
    while (!this.#stopped && clock.monotonic() < until) await this.#signal.wait(until - clock.monotonic());
  }
}
