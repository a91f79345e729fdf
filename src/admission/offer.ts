import type { GateState } from '../gate/index.ts';
import type { Lane } from '../lane.ts';
import type { KeyUse, LimitKey, LimitSettings } from '../limit/limit.ts';
import type { KnownJobs } from '../store/aside.ts';

/*
 * What a store has to start now, as one reading that takes no lock. It may be old when a plan is made of it: nothing that
 * must hold rests on it, because taking the jobs counts again under locks, and takes fewer where less is left.
 */

/**
 * What jobs share that may start together, but for keys that strangers choose: queue, lane, priority, and the name of the
 * job or the resource without its key. Lines take turns, however many keys one of them has.
 */
export interface Line {
  readonly id: number;
  readonly queue: string;
  readonly lane: Lane;
  readonly priority: number;
}

/** The jobs of a line that share a resource and limit keys. */
export interface OfferedPartition {
  readonly id: number;
  /** The resource whose gate is in `Offer.gates`; null when there is none, or it has nothing to say. */
  readonly gate: string | null;
  /** The keys of its limits: places in `Offer.uses`. */
  readonly uses: readonly number[];
  /** Due jobs, counted up to what a claim can use. Left out where nothing was counted: then at least one is due. */
  readonly due?: number;
  /** When its first job may start as far as time decides: in the past, or shortly ahead. */
  readonly opensAt: number;
  /** Its first due jobs; only behind an open gate, which draws its probe among them. */
  readonly candidates?: readonly Candidate[];
}

export interface Candidate {
  readonly id: string;
  readonly name: string;
  readonly version: number | null;
}

export interface OfferedLine extends Line {
  /** Least recently served first. */
  readonly partitions: readonly OfferedPartition[];
}

/** The settings of a limit and what one of its keys has in use. `use.total` is that of all keys of the limit. */
export interface UseReading extends LimitKey {
  readonly settings: LimitSettings;
  readonly settingsVersion: number;
  readonly use: KeyUse;
}

export interface GateReading {
  readonly state: GateState;
  readonly version: number;
  /** Of a keyed gate, and only when its parent has a row. */
  readonly parent: string | null;
}

export interface Offer {
  /** Store time of the reading. */
  readonly now: number;
  readonly lines: readonly OfferedLine[];
  readonly gates: ReadonlyMap<string, GateReading>;
  readonly parents: ReadonlyMap<string, Omit<GateReading, 'parent'>>;
  readonly uses: readonly UseReading[];
  /** Jobs of the lanes `retry` and `suspect` that run, by queue; null where taking counts them. */
  readonly running: ReadonlyMap<string, RunningRetries> | null;
  /** When time alone opens something that is not offered; null when nothing of the kind waits. */
  readonly nextAt: number | null;
}

export interface RunningRetries {
  readonly retries: number;
  readonly suspects: number;
}

export interface PlannedQueue {
  readonly queue: string;
  /** Its part of the places, relative to the other queues. */
  readonly weight: number;
  /** The part of its places that retries and redrives get while fresh work waits. */
  readonly retryShare: number;
  /** No more retries of this queue than this run at once, suspects included, over all workers; null for no bound. */
  readonly maxRetriesInFlight: number | null;
}

export interface Places {
  /** Jobs that start at once. */
  readonly free: number;
  /** Jobs that wait in the worker until a place is free. */
  readonly ahead: number;
  /** So many of `ahead` may be hot: they hold something that others could use while they wait. */
  readonly hot: number;
}

export interface PlanRequest {
  readonly places: Places;
  /** In the order in which they come when nothing else decides. */
  readonly queues: readonly PlannedQueue[];
  /** The key of the worker, as gates know it. */
  readonly worker: number;
  readonly knows: KnownJobs;
  /** One suspect, alone; otherwise none. */
  readonly isTrial: boolean;
  /** How old the offer is, by the clock of the process: only time has passed for certain since. */
  readonly ageMs: number;
}
