import type { Random } from '../retry/jitter.ts';
import { type AdmitRequest, admissibleAt, admit } from './admit.ts';
import type { GateEvent } from './event.ts';
import { passTime } from './gate.ts';
import { admitChildProbe, childProbeAt } from './parent.ts';
import { longestInterval, postpone } from './probe.ts';
import type { GateState } from './state.ts';
import { recover, type Transition } from './transition.ts';

/** What a claim behind one gate has room for, and what is due there (counting may stop above `places`). */
export interface GatedDemand {
  /** The key of the claiming worker. */
  readonly worker: number;
  readonly places: number;
  /** Places kept for retries while fresh jobs are due. */
  readonly keptForRetries: number;
  /** Due jobs of the lanes `fresh` and `redrive`. */
  readonly fresh: number;
  readonly retry: number;
  /** One of the jobs that are due first can be run by this worker, as far as it has said what it knows. */
  readonly canProbe: boolean;
}

export interface ClaimAdmission {
  /** The same objects as before when nothing needs to be written. */
  readonly state: GateState;
  readonly parent: GateState | null;
  readonly events: readonly GateEvent[];
  /** How many jobs of the lanes `fresh` and `redrive` may start, and how many retries. */
  readonly fresh: number;
  readonly retry: number;
  /** True when exactly one job may start, of either kind: `pickProbe` chooses it. */
  readonly isProbe: boolean;
  /**
   * A probe could start, but the jobs that are due first are none that this worker can run. It may take these all the same,
   * to move them aside: otherwise they would hide the jobs behind them. They are no probes, and cost the gate nothing.
   */
  readonly movesAside: boolean;
  readonly epoch: number;
  /** When this worker may ask again; null when only another state of the gate admits a job. */
  readonly nextAt: number | null;
}

/** Shares what a gate admits between fresh jobs and retries. `parent` is that of a keyed gate; null when it has no row. */
export function admitClaim(
  before: GateState,
  parent: GateState | null,
  demand: GatedDemand,
  now: number,
  random: Random,
): ClaimAdmission {
  const passed = recoverWithParent(passTime(before, now, random), parent, now);
  const isProbing = passed.state.phase === 'open' && passed.state.pin === null;
  const admission = isProbing
    ? admitProbe(passed.state, parent, demand, now, random)
    : { ...share(passed.state, demand, now, random), parent };
  const next = nextAt(admission.state, demand, now);
  const isLimited = next !== null && isProbing && admission.parent !== null;
  const at = isLimited ? Math.max(next, childProbeAt(admission.parent, now)) : next;
  return { ...admission, events: passed.events, nextAt: at };
}

/** What failed with all other keys of its parent need not be probed key by key once the outage of the parent is over. */
export function recoverWithParent(passed: Transition, parent: GateState | null, now: number): Transition {
  const { state } = passed;
  const outage = parent?.phase === 'closed' ? parent.covered.at(-1) : undefined;
  const isOpen = state.phase === 'open' && state.pin === null;
  if (!isOpen || parent === null || outage === undefined) return passed;
  if (state.epoch < outage[0] || state.epoch > parent.epoch) return passed;
  const recovered = recover(state, 'parent back', now);
  return { state: recovered.state, events: [...passed.events, ...recovered.events] };
}

type Admitted = Pick<ClaimAdmission, 'state' | 'fresh' | 'retry' | 'isProbe' | 'movesAside' | 'epoch'>;

function share(before: GateState, demand: GatedDemand, now: number, random: Random): Admitted {
  const { worker, places } = demand;
  let state = before;
  let epoch = 0;
  const ask = (pays: AdmitRequest['pays'], room: number, due: number): number => {
    const admission = admit(state, { worker, places: room, due, pays }, now, random);
    state = admission.state;
    if (admission.starts > 0) epoch = Math.max(epoch, admission.epoch);
    return admission.starts;
  };
  const kept = demand.fresh > 0 ? Math.min(places, demand.keptForRetries) : places;
  const first = ask('retry', kept, demand.retry);
  const fresh = ask('nothing', places - first, demand.fresh);
  const rest = ask('retry', places - first - fresh, demand.retry - first);
  return { state, fresh, retry: first + rest, isProbe: false, movesAside: false, epoch };
}

function admitProbe(
  before: GateState,
  parent: GateState | null,
  { worker, places, fresh, retry, canProbe }: GatedDemand,
  now: number,
  random: Random,
): Admitted & Pick<ClaimAdmission, 'parent'> {
  const none = { state: before, parent, fresh: 0, retry: 0, isProbe: false, movesAside: false, epoch: 0 };
  const { state, starts, epoch } = admit(before, { worker, places, due: fresh + retry, pays: 'nothing' }, now, random);
  if (starts === 0) return none;
  if (!canProbe) return { ...none, movesAside: true };
  const paid = parent === null ? null : admitChildProbe(parent, now);
  if (parent !== null && paid === null)
    return {
      ...none,
      state: { ...before, probes: postpone(before.probes, longestInterval(before, now), now, random) },
    };
  return { state, parent: paid, fresh: 0, retry: 0, isProbe: true, movesAside: false, epoch };
}

function nextAt(state: GateState, { worker, fresh, retry }: GatedDemand, now: number): number | null {
  const times = [
    ...(fresh > 0 ? [admissibleAt(state, { pays: 'nothing', worker }, now)] : []),
    ...(retry > 0 ? [admissibleAt(state, { pays: 'retry', worker }, now)] : []),
  ].filter((at) => at !== null);
  return times.length === 0 ? null : Math.min(...times);
}
