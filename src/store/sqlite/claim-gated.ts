import { admitClaim, type ClaimAdmission, workerKey } from '../../gate/index.ts';
import { type Lane, lanes } from '../../job.ts';
import { LANE } from '../codes.ts';
import { fillQuotas, fillTurns } from '../fill.ts';
import { parentGate } from '../gates.ts';
import { canRun, oneOf, PROBE_CANDIDATES } from '../probe-candidates.ts';
import type { GatedClaim, GatedClaimRequest, GateRef } from '../store.ts';
import { type ClaimedQueue, claimedQueues, tierName } from './claimed-queues.ts';
import { type GatedPartition, gatedOf } from './gated-partitions.ts';
import { accessText, findGate, type GateRow, writeGate } from './gates.ts';
import { type PackedJobs, type PackedRequest, packJobs, unpackRequest } from './packed-claim.ts';
import { heldUntil } from './restrictions.ts';
import type { Session } from './session.ts';
import { TakenRows } from './taken-rows.ts';

/*
 * A claim behind one gate, in one transaction: count what is due, ask the gate how much of it may start, take that, write
 * the gate. What it reads is the partitions of one resource, and of each no more jobs than it has room for.
 */

const COUNT_DUE = `
  SELECT count(*) AS n FROM (SELECT 1 FROM jobs WHERE partition = ? AND due_at <= ? LIMIT +?)`;
const FIRST_DUE = `
  SELECT id, seq, partition, due_at AS dueAt, name, policy FROM jobs WHERE partition = ? AND due_at <= ?
  ORDER BY due_at, seq LIMIT ${PROBE_CANDIDATES}`;

export interface PackedGatedClaim extends Omit<GatedClaim, 'jobs'> {
  readonly jobs: PackedJobs;
  /** Of all jobs. */
  readonly epoch: number;
}

type PackedGatedRequest = PackedRequest<GatedClaimRequest>;

export function claimGated(session: Session, request: PackedGatedRequest): PackedGatedClaim {
  const asked = ask(session, unpackRequest(session, request));
  if (asked === null) return nothing(session, null);
  const { gate, row, parent, parentRow, admission, claiming } = asked;
  const one = oneOf(admission, asked.candidates, asked.runnable, session.random);
  if (one === null) claiming.take(admission);
  else claiming.takeOne(one);
  if (isChanged(session, asked)) {
    writeGate(session, { gate, state: admission.state, events: admission.events }, row.access);
  }
  if (parent !== null && admission.parent !== null && admission.parent !== parentRow?.state) {
    writeGate(session, { gate: parent, state: admission.parent, events: [] }, null);
  }
  const { epoch, nextAt, events } = admission;
  return { jobs: packJobs(session, claiming.rows), epoch, now: session.now, nextAt, events };
}

/** Answers without a write transaction when the gate admits nothing and stays as it is; null when it takes a write. */
export function claimGatedNothing(session: Session, request: PackedGatedRequest): PackedGatedClaim | null {
  const asked = ask(session, unpackRequest(session, request));
  if (asked === null) return nothing(session, null);
  const { isProbe, movesAside, fresh, retry, nextAt } = asked.admission;
  return isProbe || movesAside || fresh + retry > 0 || isChanged(session, asked) ? null : nothing(session, nextAt);
}

function nothing(session: Session, nextAt: number | null): PackedGatedClaim {
  return { jobs: packJobs(session, []), epoch: 0, now: session.now, nextAt, events: [] };
}

interface Asked {
  readonly gate: GateRef;
  readonly row: GateRow;
  readonly parent: GateRef | null;
  readonly parentRow: GateRow | null;
  readonly admission: ClaimAdmission;
  readonly claiming: GatedClaiming;
  readonly candidates: readonly Candidate[];
  readonly runnable: readonly Candidate[];
}

/** Null when there is no such gate, or nothing is due behind it. */
function ask(session: Session, request: GatedClaimRequest): Asked | null {
  const gate: GateRef = { kind: 'resource', name: request.resource };
  const row = findGate(session, gate);
  if (row === null) return null;
  const claiming = new GatedClaiming(session, request);
  const due = claiming.due();
  if (due.fresh + due.retry === 0) return null;
  const parent = parentGate(gate);
  const parentRow = parent && findGate(session, parent);
  const candidates = row.state.phase === 'open' ? claiming.probeCandidates() : [];
  const runnable = candidates.filter(({ name, policy }) =>
    canRun(request, { name: session.strings.text(name), version: session.policy(policy).version }),
  );
  const demand = {
    ...due,
    canProbe: runnable.length > 0,
    worker: workerKey(request.worker),
    places: request.limit,
    keptForRetries: request.queues.reduce((sum, { retry }) => sum + retry, 0),
  };
  const admission = admitClaim(row.state, parentRow?.state ?? null, demand, session.now, session.random);
  return { gate, row, parent, parentRow, admission, claiming, candidates, runnable };
}

/** Also when only time has passed: what the partitions have copied may be another time then. */
function isChanged(session: Session, { gate, row, admission: { state } }: Asked): boolean {
  return state !== row.state || accessText(gate, state, session.now) !== row.access;
}

const gatedLanes = ['fresh', 'retry', 'redrive'] as const;
type GatedLane = (typeof gatedLanes)[number];

interface Candidate {
  readonly id: string;
  readonly seq: number;
  readonly partition: number;
  readonly dueAt: number;
  readonly name: number;
  readonly policy: number;
}

class GatedClaiming {
  readonly #session: Session;
  readonly #request: GatedClaimRequest;
  readonly #queues: ReadonlyMap<string, ClaimedQueue>;
  readonly #partitions: readonly GatedPartition[];
  readonly #taken: TakenRows;
  #turn: number;

  constructor(session: Session, request: GatedClaimRequest) {
    this.#session = session;
    this.#request = request;
    this.#queues = claimedQueues(session, request);
    this.#taken = new TakenRows(session, request);
    const resource = session.strings.find(request.resource);
    const partitions = resource === null ? [] : gatedOf(session, resource);
    const open = new Set(
      [...this.#queues.values()].flatMap((queue) =>
        queue.id !== null && heldUntil(session, 'queue', queue.id) <= session.now ? queuesOf(queue) : [],
      ),
    );
    this.#partitions = partitions.filter(({ queue }) => open.has(queue));
    this.#turn = 1 + Math.max(0, ...partitions.map(({ turn }) => turn));
  }

  get rows(): TakenRows['rows'] {
    return this.#taken.rows;
  }

  /** As far as the queues have room for it. Counting stops above the places of the claim. */
  due(): { readonly fresh: number; readonly retry: number } {
    const sum = (lane: GatedLane): number =>
      [...this.#queues.values()].reduce((all, queue) => all + this.#dueIn(queue, lane), 0);
    return { fresh: sum('fresh') + sum('redrive'), retry: sum('retry') };
  }

  take(admission: Pick<ClaimAdmission, 'fresh' | 'retry'>): void {
    const left = { fresh: admission.fresh, retry: admission.retry };
    fillQuotas(this.#request, (name, lane, count) => {
      const queue = this.#queues.get(name) as ClaimedQueue;
      const pays = lane === 'retry' ? 'retry' : 'fresh';
      const taken = this.#takeLane(queue, lane, Math.min(count, left[pays]));
      left[pays] -= taken;
      return taken;
    });
  }

  /** The jobs that are due first, of those that may start. */
  probeCandidates(): Candidate[] {
    return [...this.#queues.values()]
      .flatMap((queue) => gatedLanes.flatMap((lane) => (queue.room(lane) > 0 ? this.#in(queue, lane) : [])))
      .filter((partition) => this.#roomOf(partition, 1) > 0)
      .flatMap(({ id }) => this.#session.sql(FIRST_DUE).all(id, this.#session.now) as unknown as Candidate[])
      .sort((a, b) => a.dueAt - b.dueAt)
      .slice(0, PROBE_CANDIDATES);
  }

  takeOne({ seq, partition }: Candidate): void {
    this.#taken.takeOne(seq);
    this.#session.partitions.leave(partition);
  }

  #dueIn(queue: ClaimedQueue, lane: GatedLane): number {
    const most = this.#request.limit + 1;
    let due = 0;
    for (const partition of this.#in(queue, lane)) {
      if (due >= most) break;
      const counted = this.#roomOf(partition, most - due);
      due += (this.#session.sql(COUNT_DUE).get(partition.id, this.#session.now, counted) as { n: number }).n;
    }
    return due === 0 ? 0 : Math.min(due, queue.room(lane));
  }

  #takeLane(queue: ClaimedQueue, lane: Lane, count: number): number {
    const places = Math.min(count, queue.room(lane));
    let left = places;
    const partitions = this.#in(queue, lane);
    for (const priority of new Set(partitions.map((partition) => partition.priority))) {
      if (left <= 0 || this.#taken.isCutShort) break;
      const lines = Map.groupBy(
        partitions.filter((partition) => partition.priority === priority),
        ({ queue: id, line }) => tierName({ queue: id, lane, priority, line }),
      );
      const { turns } = this.#session;
      left -= fillTurns(
        turns.inOrder([...lines], ([name]) => name),
        left,
        ([name, ofLine], part) => {
          const taken = this.#takeFrom(ofLine, part);
          if (taken > 0) turns.served(name);
          return taken;
        },
      );
    }
    return places - left;
  }

  #takeFrom(partitions: readonly GatedPartition[], places: number): number {
    const { taken, read } = this.#taken.takeTurns(partitions, places, (partition, count) =>
      this.#roomOf(partition, count),
    );
    this.#session.partitions.servedGated(read, this.#turn);
    this.#turn += read.length;
    return taken;
  }

  /** By priority, then the least recently served first. */
  #in(queue: ClaimedQueue, lane: Lane): GatedPartition[] {
    const ids = queuesOf(queue);
    return this.#partitions.filter((partition) => ids.includes(partition.queue) && partition.lane === LANE[lane]);
  }

  #roomOf({ limits, lane }: GatedPartition, count: number): number {
    if (limits === null) return count;
    const use = this.#taken.limits;
    return use.room(use.parse(limits), lanes[lane] as Lane, count);
  }
}

function queuesOf({ ids, limited }: ClaimedQueue): number[] {
  return [...ids, ...limited.map(({ id }) => id)];
}
