import {
  admissibleAt,
  budgetOf,
  type GateEvent,
  type GateFigures,
  gateFigures,
  type Phase,
  type Pin,
  peakRate,
  withinBounds,
} from '../gate/index.ts';
import { newGate } from '../store/gates.ts';
import type { GateKind, GateRef, StoredGate } from '../store/store.ts';

/** A gate as it is read. Times are ms since the epoch, in store time; rates are jobs per second. */
export interface GateInfo {
  /** `smtp`, or `webhook/example.com`; of a soft gate the name of the job, or of the parent. */
  readonly name: string;
  /** `resource`: jobs wait behind it. `job`, `parent`: a soft gate, which only judges whether there is an outage. */
  readonly kind: GateKind;
  /** `open`: only probes start; `ramp`: jobs start at a rising rate. An open soft gate sees an outage. */
  readonly phase: Phase;
  /** What an operator ordered; it wins over every rule. */
  readonly pin: Pin | null;
  /** When this was read. */
  readonly at: number;
  /** When its phase began; null when it has been closed for as long as it is known. */
  readonly since: number | null;
  /** When the last report about it came in; null when it was not heard of. */
  readonly heardAt: number | null;
  /** Since when the dependency is down, ramps that failed included; null when it is not. */
  readonly downSince: number | null;
  /**
   * When the next job may start; `at` when at once, null when only an operator can let one start. Where all that wait behind it
   * are due later, that time counts.
   */
  readonly nextAt: number | null;
  /** True while the probe of an open gate runs: the next one may start when it has answered. */
  readonly isProbing: boolean;
  /** Until when the dependency asked to be left alone (Retry-After); null when it did not. */
  readonly heldUntil: number | null;
  readonly rate: {
    /** How many jobs may start; null when there is no limit. */
    readonly limit: number | null;
    /** The highest rate that was served lately; 0 when none was measured. */
    readonly peak: number;
  };
  /** How many retries may start at once, and how many can be saved up. While it is low, retries start at its rate. */
  readonly budget: { readonly tokens: number; readonly cap: number; readonly isLow: boolean };
  /** What was seen within the last 30 seconds. */
  readonly figures: Omit<GateFigures, 'peak' | 'limit' | 'heldUntil'>;
  /** Workers that fail alone, and so start fewer jobs behind this gate. */
  readonly suspectWorkers: number;
  /** True when no probe was answered for 5 days. */
  readonly isDormant: boolean;
  /** Jobs that wait behind it; null for a soft gate, and for one that was not heard of. */
  readonly waiting: number | null;
  /** The last change of its phase: what made it, and who. Null when there was none lately. */
  readonly reason: GateReason | null;
}

export type GateReason = Pick<GateEvent, 'change' | 'rule' | 'who' | 'at'>;

/** A gate without a row: closed, and not heard of. */
export function unheardOf(gate: GateRef, reason: GateEvent | null, now: number): GateInfo {
  return {
    ...gateInfo({ gate, state: newGate(gate, now), now, waiting: null, firstDueAt: null }, reason),
    heardAt: null,
  };
}

export function gateInfo(
  { gate, state: stored, now, waiting, firstDueAt }: StoredGate,
  reason: GateEvent | null,
): GateInfo {
  const state = withinBounds(stored, now);
  const { phase, pin, epoch, heardAt, downSince, dormant, workers, ramp } = state;
  const admitsAt = gate.kind === 'resource' ? admissibleAt(state, { pays: 'nothing' }, now) : now;
  const isWaitedFor = firstDueAt !== null && phase !== 'closed' && admitsAt !== null;
  const { peak: _peak, limit: _limit, heldUntil, ...figures } = gateFigures(state, now);
  return {
    name: gate.name,
    kind: gate.kind,
    phase,
    pin,
    isProbing: phase === 'open' && pin === null && state.probes.slotUntil > now,
    at: now,
    since: epoch === 0 ? null : Math.min(epoch, now),
    heardAt,
    downSince: downSince === 0 ? null : downSince,
    nextAt: isWaitedFor ? Math.max(admitsAt, firstDueAt) : admitsAt,
    heldUntil,
    rate: { limit: ramp?.limit ?? null, peak: peakRate(state.peak, now) },
    budget: budgetOf(state, now),
    figures,
    suspectWorkers: workers.filter(({ intervalMs }) => intervalMs > 0).length,
    isDormant: dormant,
    waiting,
    reason: reason && toReason(reason),
  };
}

function toReason({ change, rule, who, at }: GateEvent): GateReason {
  return { change, rule, who, at };
}

const byHand: readonly GateEvent['change'][] = ['pinned', 'unpinned', 'reset'];

/** The last event that began a phase; of a gate that was told about by others only, the last one. */
export function lastTransition(history: readonly GateEvent[]): GateEvent | null {
  return history.find(({ from, to, change }) => from !== to || byHand.includes(change)) ?? history[0] ?? null;
}
