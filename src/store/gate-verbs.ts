import type { GateEvent, GateKind, GateRef, GateReport, GateState } from '../gate/index.ts';

/* What stores are told about gates, and what they answer. */

/** What a worker saw of a gate; null only asks for the gate as it is now. */
export interface WorkerReport {
  readonly gate: GateRef;
  readonly report: GateReport | null;
  /** Who saw it, for the gate's history; gates themselves know workers by their keys. */
  readonly worker?: string;
}

export interface GateAnswer {
  readonly gate: GateRef;
  readonly state: GateState;
  /** Store time at which the gate was in this state. */
  readonly now: number;
  /** What this call changed; the caller tells it to the world. */
  readonly events: readonly GateEvent[];
}

export interface GateFilter {
  /** `waiting` of each answer is null: counting a million jobs takes a while. */
  readonly skipWaiting?: boolean;
  readonly kind?: GateKind;
  readonly name?: string;
  readonly limit: number;
}

export interface StoredGate {
  readonly gate: GateRef;
  readonly state: GateState;
  readonly now: number;
  /** Jobs that wait behind it; null for a soft gate, and when they were not counted. */
  readonly waiting: number | null;
  /** When the first of them is due; null when none waits, or when they were not counted. */
  readonly firstDueAt: number | null;
}

/** open and close pin the gate; unpin gives it back to its rules; reset lets it forget what it saw. */
export const gateOrders = ['open', 'close', 'unpin', 'reset'] as const;
export type GateOrder = (typeof gateOrders)[number];
