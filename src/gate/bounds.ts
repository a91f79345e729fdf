import {
  FLOOR_RATE,
  HOLD_LONGEST_MS,
  LARGEST_RATE,
  PROBE_LONGEST_KEYED_MS,
  PROBE_LONGEST_MS,
  PROBE_SLOT_MS,
  RAMP_BURST_MS,
  SUSPECT_LONGEST_MS,
} from './constants.ts';
import type { Ramp } from './ramp-state.ts';
import type { GateState } from './state.ts';

/** One start at the slowest rate, and what rounding adds. */
const SLACK_MS: number = 1_000 / FLOOR_RATE + 1;

/**
 * A stored time that lies further ahead than the gate itself would have put it comes from a store clock that has stepped
 * back since, or from a hostile number. It counts as over: otherwise it would keep the gate shut.
 */
export function withinBounds(state: GateState, now: number): GateState {
  const past = (at: number): number => Math.min(at, now);
  const ahead = (at: number, mostMs: number): number => (at > now + mostMs + SLACK_MS ? now : at);
  const longestMs = state.keyed ? PROBE_LONGEST_KEYED_MS : PROBE_LONGEST_MS;
  const heldUntil = ahead(state.heldUntil, HOLD_LONGEST_MS);
  const { probes, window } = state;
  return {
    ...state,
    epoch: state.phase === 'closed' ? past(state.epoch) : state.epoch,
    heardAt: past(state.heardAt),
    window: { ...window, streak: { ...window.streak, since: past(window.streak.since), at: past(window.streak.at) } },
    workers: state.workers.map((entry) => ({
      ...entry,
      at: past(entry.at),
      until: ahead(entry.until, SUSPECT_LONGEST_MS),
    })),
    peak: { ...state.peak, rate: Math.min(state.peak.rate, LARGEST_RATE), at: past(state.peak.at) },
    probes: {
      ...probes,
      intervalMs: Math.min(probes.intervalMs, longestMs),
      at: ahead(probes.at, longestMs),
      slotUntil: ahead(probes.slotUntil, PROBE_SLOT_MS),
    },
    ramp: state.ramp && boundedRamp(state.ramp, Math.max(now, heldUntil)),
    failedRamp: state.failedRamp && { ...state.failedRamp, at: past(state.failedRamp.at) },
    heldUntil,
    budget: { tokens: state.budget.tokens, at: past(state.budget.at) },
    downSince: past(state.downSince),
  };
}

/** After a hold a ramp begins when the hold ends, so its times may lie as far ahead. */
function boundedRamp(ramp: Ramp, latest: number): Ramp {
  const past = (at: number): number => Math.min(at, latest);
  const limit = Math.min(Math.max(ramp.limit, FLOOR_RATE), LARGEST_RATE);
  return {
    ...ramp,
    limit,
    base: Math.min(Math.max(ramp.base, FLOOR_RATE), LARGEST_RATE),
    tat: ramp.tat > latest + RAMP_BURST_MS + SLACK_MS ? latest : ramp.tat,
    stepAt: past(ramp.stepAt),
    cutAt: past(ramp.cutAt),
    boundAt: past(ramp.boundAt),
    healthySince: past(ramp.healthySince),
    ceilingSince: past(ramp.ceilingSince),
  };
}
