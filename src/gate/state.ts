import { type Budget, fullBudget } from './budget.ts';
import { noProbes, type Probes } from './probe.ts';
import type { FailedRamp } from './ramp.ts';
import type { Ramp } from './ramp-state.ts';
import { noPeak, type Peak } from './rate.ts';
import { type JobBits, noJobs } from './sets.ts';
import { hasShape, listOf, nullOr, oneOf, signed } from './shape.ts';
import { emptyWindow, type Window } from './window.ts';
import type { FailingWorker } from './workers.ts';

export type Phase = 'closed' | 'open' | 'ramp';
export type Pin = 'open' | 'closed';

/** All that is stored of a gate: one JSON value in one row. */
export interface GateState {
  readonly phase: Phase;
  /** Names the time since the last transition: the store time of that transition, but always rising. */
  readonly epoch: number;
  /** What an operator decided; it wins over everything. */
  readonly pin: Pin | null;
  /** A gate whose key comes from a job's input: there may be 100,000 of them. */
  readonly keyed: boolean;
  /** When the last report came in. */
  readonly heardAt: number;
  readonly window: Window;
  readonly workers: readonly FailingWorker[];
  readonly peak: Peak;
  readonly probes: Probes;
  readonly ramp: Ramp | null;
  /** Where the last ramp failed, and when. */
  readonly failedRamp: (FailedRamp & { readonly at: number }) | null;
  readonly heldUntil: number;
  readonly asked: Asked;
  readonly budget: Budget;
  /** Spans of closed time that turned out to belong to an outage: see refund.ts. Oldest first. */
  readonly covered: readonly (readonly [from: number, until: number])[];
  /** Since when the dependency is down; 0 when it is not. A ramp that fails does not begin a new outage. */
  readonly downSince: number;
  /** True when an outage of 5 days was reported. */
  readonly dormant: boolean;
  /** Of a parent: see parent.ts. */
  readonly children: ChildrenSeen;
}

/** Who was asked to wait: see hold.ts. */
export interface Asked {
  /** The jobs that the last holds were for, when the last of them began, and signs of life since. */
  readonly jobs: JobBits;
  readonly at: number;
  readonly alive: number;
  /** Runs that asked to wait since the last sign of life. */
  readonly inRow: number;
}

/** What a parent knows of its children beside their rows. */
export interface ChildrenSeen {
  /** How many gave a sign of life to one worker, and when that was reported. */
  readonly living: number;
  readonly livingAt: number;
  /** When their rows were last counted. */
  readonly countedAt: number;
  /** Up to when their probes so far are paid for: see `tat` in rate.ts. */
  readonly probesTat: number;
}

export function closedGate(now: number, { keyed = false }: { readonly keyed?: boolean } = {}): GateState {
  return {
    phase: 'closed',
    epoch: now,
    pin: null,
    keyed,
    heardAt: now,
    window: emptyWindow,
    workers: [],
    peak: noPeak,
    probes: noProbes,
    ramp: null,
    failedRamp: null,
    heldUntil: 0,
    asked: { jobs: noJobs, at: 0, alive: 0, inRow: 0 },
    budget: fullBudget(now),
    covered: [],
    downSince: 0,
    dormant: false,
    children: { living: 0, livingAt: 0, countedAt: 0, probesTat: 0 },
  };
}

export function formatGate(state: GateState): string {
  return JSON.stringify(state, (_, value: unknown) => (typeof value === 'number' ? Number(value.toFixed(4)) : value));
}

const bits = [0, 0];
const bucket = { at: 0, alive: 0, environment: 0, asks: 0, jobs: bits, failing: listOf(0), living: listOf(0) };
const streak = { count: 0, since: 0, at: 0, jobs: bits, workers: listOf(0) };
const ramp = {
  ...{ limit: 0, base: 0, tat: 0, stepAt: 0, alive: 0, environment: 0, slowestMs: 0, healthyLimit: 0 },
  ...{
    background: 0,
    cuts: 0,
    cutShare: 0,
    cutLimit: 0,
    top: 0,
    cutAt: 0,
    boundAt: 0,
    healthySince: 0,
    ceilingSince: 0,
  },
};
const shape = {
  phase: oneOf('closed', 'open', 'ramp'),
  epoch: 0,
  pin: oneOf(null, 'open', 'closed'),
  keyed: oneOf(true, false),
  heardAt: 0,
  window: { buckets: listOf(bucket), streak, span: { at: 0, runs: 0, before: 0 } },
  workers: listOf({ worker: 0, streak: 0, at: 0, intervalMs: 0, until: 0 }),
  peak: { rate: 0, at: 0, parts: 0, lastPart: 0 },
  probes: { at: 0, intervalMs: 0, slotUntil: 0, alive: 0, failed: bits, failedLast: bits, failedWorker: 0 },
  ramp: nullOr(ramp),
  failedRamp: nullOr({ limit: 0, top: 0, at: 0 }),
  heldUntil: 0,
  asked: { jobs: bits, at: 0, alive: 0, inRow: 0 },
  // Retries that were charged after they ran may have cost more than was saved.
  budget: { tokens: signed(), at: 0 },
  covered: listOf([0, 0]),
  downSince: 0,
  dormant: oneOf(true, false),
  children: { living: 0, livingAt: 0, countedAt: 0, probesTat: 0 },
};

/** Reads a stored gate. What cannot be read is a closed gate: a broken row must not stop a resource. */
export function parseGate(text: string, now: number, keyed: { readonly keyed?: boolean } = {}): GateState {
  const value = parseJson(text);
  if (!hasShape(value, shape)) return closedGate(now, keyed);
  const state = value as unknown as GateState;
  const isRampWithout = (state.phase === 'ramp') !== (state.ramp !== null);
  return isRampWithout ? closedGate(now, keyed) : state;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
