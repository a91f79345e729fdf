import { joinWorkers } from './sets.ts';
import type { GateState, Phase } from './state.ts';
import { figuresOf } from './window.ts';

/** What changed: one row of the gate's history, one event, one log line. */
export type GateChange =
  | 'opened'
  | 'recovering'
  | 'closed'
  | 'held'
  | 'worker-suspect'
  | 'dormant'
  | 'pinned'
  | 'unpinned'
  | 'reset';

export interface GateEvent {
  readonly at: number;
  readonly change: GateChange;
  readonly from: Phase;
  readonly to: Phase;
  /** The rule that made it (`fast`, `probes alive`, ...), or `operator`. */
  readonly rule: string;
  /** The epoch that begins with it; that of the state when it is no transition. */
  readonly epoch: number;
  /** The operator, or the suspect worker; null otherwise. */
  readonly who: string | null;
  readonly figures: GateFigures;
}

/** What the gate knew at that moment. */
export interface GateFigures {
  readonly alive: number;
  readonly environment: number;
  readonly distinctJobs: number;
  readonly failingWorkers: number;
  readonly workers: number;
  readonly streak: number;
  /** Starts per second: the proven peak, and the limit of the ramp (null outside one). */
  readonly peak: number;
  readonly limit: number | null;
  readonly heldUntil: number | null;
}

export function gateFigures(state: GateState, now: number): GateFigures {
  const { alive, environment, distinctJobs, failing, living, streak } = figuresOf(state.window, now);
  return {
    alive,
    environment,
    distinctJobs,
    failingWorkers: failing.length,
    workers: joinWorkers(failing, living).length,
    streak,
    peak: state.peak.rate,
    limit: state.ramp?.limit ?? null,
    heldUntil: state.heldUntil > now ? state.heldUntil : null,
  };
}

/** The figures are those from before the change: they are why it was made. */
export function gateEvent(
  before: GateState,
  after: GateState,
  change: GateChange,
  rule: string,
  now: number,
  who: string | null = null,
): GateEvent {
  const figures = { ...gateFigures(before, now), heldUntil: after.heldUntil > now ? after.heldUntil : null };
  return { at: now, change, from: before.phase, to: after.phase, rule, epoch: after.epoch, who, figures };
}
