import type { Claim, Heartbeat, HeartbeatAnswer, SettleAnswer, Settlement } from '../../src/store/store.ts';
import type { ExecutedEvent, History, HistoryEvent } from '../history.ts';
import { START } from '../scheduler.ts';
import type { Check } from './checker.ts';

/** Time enough for a worker to try again, even when calls are slow. */
const TRY_AGAIN_MS = 1_500;
/** So long a call that hung before the store was well may hold up what its worker sends after it, or for half a lease. */
const HANGING_MS = 3_000;

/**
 * Guarantees 3 and 10, from the worker's side: a living worker keeps its leases, and an outcome that was not recorded
 * is sent again while the lease lasts, as far as the worker can know.
 */
export class Diligence {
  readonly #history: History;
  readonly #leaseMs: number;
  readonly #down: Set<string> = new Set();
  readonly #calls: Map<number, CallEvent> = new Map();
  /** By job and run: until when its worker knows the lease to last, and what was left when it heard that settling failed. */
  readonly #knownEnd: Map<string, number> = new Map();
  readonly #leftMs: Map<string, number> = new Map();

  constructor(history: History, leaseMs: number) {
    this.#history = history;
    this.#leaseMs = leaseMs;
  }

  observe(event: HistoryEvent, check: Check): void {
    if (event.kind === 'down') this.#down.add(event.process);
    if (event.kind === 'executed' || event.kind === 'refused') this.#called(event);
    // After half a lease a call has failed for its caller, whatever is heard of it later.
    if (event.kind === 'answered' && event.at - event.sentAt < this.#leaseMs / 2) {
      this.#answered(event.call, event.at, event.ok);
    }
    if (event.kind === 'executed' && event.verb === 'settle') this.#rescued(event, check);
  }

  #called(event: CallEvent): void {
    this.#calls.set(event.call, event);
    if (event.verb !== 'settle') return;
    for (const { id, run, outcome } of event.args[0] as readonly Settlement[]) {
      if (outcome !== 'crashed') this.#leftMs.delete(`${id} ${run}`);
    }
  }

  #answered(call: number, at: number, ok: boolean): void {
    const event = this.#calls.get(call);
    if (event === undefined) return;
    if (!ok && event.verb === 'settle') {
      for (const { id, run } of event.args[0] as readonly Settlement[]) {
        const name = `${id} ${run}`;
        this.#leftMs.set(name, (this.#knownEnd.get(name) ?? 0) - (START + at));
      }
    }
    if (!ok || event.kind !== 'executed') return;
    if (event.verb === 'claim' || event.verb === 'claimGated' || event.verb === 'claimLimited') {
      for (const { id, run, leaseEndsAt } of (event.value as Pick<Claim, 'jobs'>).jobs)
        this.#knownEnd.set(`${id} ${run}`, leaseEndsAt);
    } else if (event.verb === 'heartbeat') {
      for (const [index, answer] of (event.value as readonly HeartbeatAnswer[]).entries()) {
        const { id, run } = (event.args[0] as readonly Heartbeat[])[index] as Heartbeat;
        if (answer.kept) this.#knownEnd.set(`${id} ${run}`, answer.leaseEndsAt);
      }
    }
  }

  #rescued({ args, value }: ExecutedEvent, { model, expect }: Check): void {
    for (const [index, { id, run, worker, outcome }] of (args[0] as readonly Settlement[]).entries()) {
      const lease = model.jobs.get(id)?.lease;
      const applied = outcome === 'crashed' && (value as readonly SettleAnswer[])[index] !== 'stale';
      if (!applied || !lease || lease.worker !== worker || this.#isDown(worker)) continue;
      const leftMs = this.#leftMs.get(`${id} ${run}`) ?? 0;
      expect(
        3,
        leftMs < TRY_AGAIN_MS,
        () => `the outcome of run ${run} of ${id} was not sent again, with ${leftMs} ms left`,
      );
      const { healedAt } = this.#history;
      // Of a claim whose answer was lost the worker knows nothing.
      const known = this.#knownEnd.has(`${id} ${run}`);
      const inHealth =
        known && healedAt !== null && lease.claimedAt > START + healedAt + Math.max(HANGING_MS, this.#leaseMs / 2);
      expect(10, !inHealth, () => `run ${run} of ${id} ended as crashed, but its worker lives and the store is well`);
    }
  }

  /** Workers are named after their process. */
  #isDown(worker: string): boolean {
    return [...this.#down].some((process) => worker.startsWith(`${process}-`));
  }
}

type CallEvent = Extract<HistoryEvent, { kind: 'executed' | 'refused' }>;
