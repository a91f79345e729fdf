import type { GateEvent, GateState } from '../gate/index.ts';
import { admitted, type GateRoom, gateRoom } from '../gate/room.ts';
import { isRetry } from '../lane.ts';
import type { KeyUse, LimitSettings } from '../limit/limit.ts';
import { afterStarts } from '../limit/rate.ts';
import { roomAt, roomOf } from '../limit/room.ts';
import type { Random } from '../retry/jitter.ts';
import { drawProbe } from './candidates.ts';
import type { Offer, OfferedPartition, PlanRequest } from './offer.ts';
import { type CapGuard, keepsOne, retryRoom } from './retries.ts';
import type { Flow } from './shares.ts';

/*
 * What is left during a plan: places, retries of each queue, what each gate and each key of a limit lets start. Each job that
 * is planned takes its part of all of them, so that jobs of different kinds never get more than there is together.
 */

/** A key of a limit, as a plan reads it: taking counts again what is in use, and takes no more than these bounds leave. */
export interface UseGuard {
  /** Its place in `Offer.uses`. */
  readonly use: number;
  readonly limit: string;
  readonly key: string;
  readonly settingsVersion: number;
  readonly settings: LimitSettings;
}

/** A gate that is written with the jobs that it let start, if it is still at this version. */
export interface GateGuard {
  readonly kind: 'resource' | 'parent';
  readonly name: string;
  readonly version: number;
  /** Null when nothing is to be written: then only the version must hold. */
  readonly state: GateState | null;
  readonly events: readonly GateEvent[];
  readonly epoch: number;
}

/** Why a partition gives no more. `time`: until then; `use`: until something of this key ends; `places`: in this plan. */
export type Refusal =
  | { readonly by: 'due' | 'places' | 'retries' | 'unknown job' }
  | { readonly by: 'gate'; readonly until: number | null }
  | { readonly by: 'use'; readonly use: number; readonly until: number | null };

export interface Grant {
  readonly places: number;
  readonly isHot: boolean;
  /** The id of the job, when it is a probe. */
  readonly probe: string | null;
  /** The id of a job that the worker cannot run, and takes to move it aside. */
  readonly aside: string | null;
}

interface OpenGate {
  readonly room: GateRoom;
  readonly version: number;
  readonly parent: string | null;
  fresh: number;
  retries: number;
  suspects: number;
  /** More is due behind it than it let start. */
  isMoreDue: boolean;
}

export class Rooms {
  readonly #offer: Offer;
  readonly #request: PlanRequest;
  readonly #now: number;
  readonly #random: Random;
  readonly #uses: { settings: LimitSettings; use: KeyUse }[];
  /** Jobs that were planned, by limit: a total counts all keys. */
  readonly #totals: Map<string, number> = new Map();
  readonly #usesAsked: Set<number> = new Set();
  readonly #gates: Map<string, OpenGate> = new Map();
  readonly #parents: Map<string, GateState> = new Map();
  readonly #caps: Map<string, { left: number; guard: CapGuard | null }> = new Map();
  readonly #suspectsDue: ReadonlySet<string>;
  readonly #given: Map<OfferedPartition, number> = new Map();
  #places: number;
  #hot: number;

  constructor(offer: Offer, request: PlanRequest, now: number, random: Random) {
    const { free, ahead, hot } = request.places;
    this.#offer = offer;
    this.#request = request;
    this.#now = now;
    this.#random = random;
    this.#places = request.isTrial ? Math.min(1, free) : free + ahead;
    this.#hot = free + hot;
    this.#uses = offer.uses.map(({ settings, use }) => ({ settings, use }));
    this.#suspectsDue = new Set(
      offer.lines.flatMap(({ queue, lane, partitions }) =>
        lane === 'suspect' && partitions.some((one) => one.opensAt <= now && one.due !== 0) ? [queue] : [],
      ),
    );
  }

  get places(): number {
    return this.#places;
  }

  /** Gives a partition up to so many places. */
  take(flow: Flow, partition: OfferedPartition, wanted: number): Grant | Refusal {
    const given = this.#given.get(partition) ?? 0;
    const due = partition.due === undefined ? Number.POSITIVE_INFINITY : partition.due - given;
    const cap = this.#cap(flow);
    if (due <= 0) return { by: 'due' };
    if (cap.left <= 0) return { by: 'retries' };
    const gate = this.#gate(partition);
    const behind = gate === null ? Number.POSITIVE_INFINITY : gateLeft(gate, flow);
    if (gate && behind <= 0) return this.#refusedByGate(gate, flow);
    let room = Math.min(wanted, due, cap.left, behind, this.#places);
    if (flow.lane !== 'suspect') {
      for (const use of partition.uses) {
        const left = this.#useLeft(use, flow);
        if (left <= 0) return { by: 'use', use, until: this.#useOpensAt(use, flow) };
        room = Math.min(room, left);
      }
    }
    const cool = this.#coolRoom(flow, partition, gate, cap.guard !== null);
    const isHot = cool <= 0;
    if (isHot && this.#hot <= 0) return { by: 'places' };
    const places = Math.min(room, isHot ? 1 : cool);
    const probe = gate?.room.isProbe && flow.lane !== 'suspect' ? this.#draw(partition, gate) : null;
    if (probe === undefined) return this.#moveAside(partition);
    this.#charge(flow, partition, gate, cap, places);
    if (isHot) this.#hot -= places;
    this.#given.set(partition, given + places);
    return { places, isHot, probe, aside: null };
  }

  /**
   * The worker can run none of the jobs that are due first. It takes one of them to move it aside, because they hide the jobs
   * behind them; that is no probe, and costs the gate nothing.
   */
  #moveAside(partition: OfferedPartition): Grant | Refusal {
    const [first] = partition.candidates ?? [];
    if (first === undefined || this.#given.has(partition)) return { by: 'unknown job' };
    this.#given.set(partition, 1);
    this.#places--;
    this.#hot--;
    return { places: 1, isHot: true, probe: null, aside: first.id };
  }

  /** How many more jobs a partition may give when others have less than was planned; hot ones never do. */
  spare(flow: Flow, partition: OfferedPartition): number {
    const gate = this.#gate(partition);
    const cap = this.#cap(flow);
    const cool = this.#coolRoom(flow, partition, gate, cap.guard !== null);
    if (cool <= 0) return 0;
    const due = (partition.due ?? Number.POSITIVE_INFINITY) - (this.#given.get(partition) ?? 0);
    const uses = partition.uses.map((use) => this.#useLeft(use, flow));
    return Math.max(0, Math.min(due, cool, gate === null ? due : gateLeft(gate, flow), ...uses));
  }

  caps(): CapGuard[] {
    return [...this.#caps.values()].flatMap(({ guard }) => (guard === null ? [] : [guard]));
  }

  uses(): UseGuard[] {
    return [...this.#usesAsked].map((use) => {
      const reading = this.#offer.uses[use] as Offer['uses'][number];
      const { limit, key, settingsVersion, settings } = reading;
      return { use, limit, key, settingsVersion, settings };
    });
  }

  /** One for each gate that was looked at, after all that it let start. Its parent's comes with the first of its keys. */
  gates(): GateGuard[] {
    const parents = new Map<string, GateGuard>();
    const gates = [...this.#gates].map(([name, gate]): GateGuard => {
      const { room, version, parent } = gate;
      const before = this.#offer.gates.get(name)?.state;
      const { state, epoch } = admitted(room, gate, this.#now);
      const reading = parent === null ? undefined : this.#offer.parents.get(parent);
      const parentAfter = parent === null ? undefined : this.#parents.get(parent);
      if (parent !== null && reading && parentAfter && parentAfter !== reading.state) {
        const { version: of } = reading;
        parents.set(parent, { kind: 'parent', name: parent, version: of, state: parentAfter, events: [], epoch: 0 });
      }
      const { events } = room;
      return { kind: 'resource', name, version, state: state === before ? null : state, events, epoch };
    });
    return [...parents.values(), ...gates];
  }

  #cap({ queue, lane }: Flow): { left: number; guard: CapGuard | null } {
    if (!isRetry(lane)) return uncapped;
    const key = lane === 'suspect' ? `suspect ${queue}` : queue;
    const known = this.#caps.get(key);
    if (known) return known;
    const planned = this.#request.queues.find((one) => one.queue === queue);
    if (planned === undefined) return { left: 0, guard: null };
    const { running: all } = this.#offer;
    const running = all === null ? null : (all.get(queue) ?? { retries: 0, suspects: 0 });
    const isSuspectDue = this.#suspectsDue.has(queue);
    const { maxRetriesInFlight: bound } = planned;
    const keepsOneForSuspect = lane !== 'suspect' && keepsOne(isSuspectDue, running);
    const guard = bound === null ? null : { queue, cap: bound, keepsOneForSuspect };
    const cap = { left: retryRoom(planned, running, lane, isSuspectDue), guard };
    this.#caps.set(key, cap);
    return cap;
  }

  #gate({ gate: name }: OfferedPartition): OpenGate | null {
    if (name === null) return null;
    const known = this.#gates.get(name);
    if (known) return known;
    const reading = this.#offer.gates.get(name);
    if (reading === undefined) return null;
    const { version, parent } = reading;
    const parentState = parent === null ? null : (this.#parents.get(parent) ?? this.#offer.parents.get(parent)?.state);
    const room = gateRoom(reading.state, parentState ?? null, this.#request.worker, this.#now, this.#random);
    const gate = { room, version, parent, fresh: 0, retries: 0, suspects: 0, isMoreDue: false };
    this.#gates.set(name, gate);
    return gate;
  }

  #refusedByGate(gate: OpenGate, { lane }: Flow): Refusal {
    gate.isMoreDue = true;
    const { state, parent } = admitted(gate.room, gate, this.#now);
    const isUntouched = state === gate.room.state;
    const room = isUntouched ? gate.room : gateRoom(state, parent, this.#request.worker, this.#now, this.#random);
    return { by: 'gate', until: lane === 'retry' ? room.retryAt : room.freshAt };
  }

  /** Undefined when the worker can run none of the candidates: the slot stays with the gate. */
  #draw({ candidates = [] }: OfferedPartition, { room }: OpenGate): string | undefined {
    return drawProbe(candidates, this.#request.knows, room.state.probes, this.#random) ?? undefined;
  }

  #useLeft(index: number, { lane }: Flow): number {
    this.#usesAsked.add(index);
    const { settings, use } = this.#uses[index] as { settings: LimitSettings; use: KeyUse };
    const { limit } = this.#offer.uses[index] as Offer['uses'][number];
    const total = use.total + (this.#totals.get(limit) ?? 0);
    return roomOf(settings, { ...use, total }, lane, this.#now);
  }

  #useOpensAt(index: number, { lane }: Flow): number | null {
    const { settings, use } = this.#uses[index] as { settings: LimitSettings; use: KeyUse };
    return roomAt(settings, use, lane);
  }

  /**
   * How many jobs are not hot: they may wait in a worker without holding what others could use. None of a capped retry, of what
   * a gate charges, or behind a rate, which counts a start when it is claimed; of a key's places, half.
   */
  #coolRoom({ lane }: Flow, { uses }: OfferedPartition, gate: OpenGate | null, isCapped: boolean): number {
    if (isCapped || lane === 'suspect') return 0;
    if (gate && (gate.room.chargesAll || (lane === 'retry' && gate.room.chargesRetries))) return 0;
    return Math.min(...uses.map((use) => this.#coolUse(use)), Number.POSITIVE_INFINITY);
  }

  #coolUse(index: number): number {
    const { settings, use } = this.#uses[index] as { settings: LimitSettings; use: KeyUse };
    const { concurrency, total, rate } = settings;
    if (rate !== null) return 0;
    const { limit } = this.#offer.uses[index] as Offer['uses'][number];
    const half = (bound: number | null, inUse: number): number =>
      bound === null ? Number.POSITIVE_INFINITY : Math.floor(bound / 2) - inUse;
    const all = use.total + (this.#totals.get(limit) ?? 0);
    return Math.min(half(concurrency, use.running + use.waiting), half(total, all));
  }

  #charge(
    { lane }: Flow,
    { uses }: OfferedPartition,
    gate: OpenGate | null,
    cap: { left: number },
    places: number,
  ): void {
    this.#places -= places;
    if (isRetry(lane)) cap.left -= places;
    if (gate && lane === 'suspect') gate.suspects += places;
    else if (gate) {
      gate[lane === 'retry' ? 'retries' : 'fresh'] += places;
      if (gate.room.isProbe && gate.parent !== null && gate.room.parent !== null) {
        const { parent } = admitted(gate.room, { fresh: 1, retries: 0, isMoreDue: false }, this.#now);
        if (parent !== null) this.#parents.set(gate.parent, parent);
      }
    }
    for (const limit of new Set(uses.map((index) => this.#offer.uses[index]?.limit ?? ''))) {
      this.#totals.set(limit, (this.#totals.get(limit) ?? 0) + places);
    }
    for (const index of uses) {
      const { settings, use } = this.#uses[index] as { settings: LimitSettings; use: KeyUse };
      const { rate } = settings;
      const nextStartAt = rate === null ? use.nextStartAt : afterStarts(rate, use.nextStartAt, this.#now, places);
      this.#uses[index] = { settings, use: { ...use, running: use.running + places, nextStartAt } };
    }
  }
}

const uncapped = { left: Number.POSITIVE_INFINITY, guard: null };

function gateLeft({ room, fresh, retries, suspects }: OpenGate, { lane }: Flow): number {
  if (lane === 'suspect') return room.admitsSuspect ? 1 - suspects : 0;
  const left = room.starts - fresh - retries;
  return lane === 'retry' ? Math.min(left, room.retries - retries) : left;
}
