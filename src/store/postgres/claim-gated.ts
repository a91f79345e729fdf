import { admitClaim, type ClaimAdmission, type GateState, workerKey } from '../../gate/index.ts';
import { LANE } from '../codes.ts';
import { fillLines, fillQuotas } from '../fill.ts';
import { type GateWrite, parentGate } from '../gates.ts';
import { canRun, oneOf, PROBE_CANDIDATES } from '../probe-candidates.ts';
import { CLAIM_BYTES, type GatedClaim, type GatedClaimRequest, type GateRef } from '../store.ts';
import { loadTypes } from './claim.ts';
import type { TakenRow } from './claimed.ts';
import { numbersOrNull, plain, texts } from './connection/arrays.ts';
import { type GateColumns, GateConflict, gateColumns, stateOf, untilWritten, writeGates } from './gates.ts';
import { holdTaken } from './hold-taken.ts';
import type { LimitRooms } from './limit-rooms.ts';
import { readUses } from './limits.ts';
import { lineOf, type Partition, type PartitionRow, toPartition } from './partitions.ts';
import type { Found, Position, Range } from './scan/scan-cursor.ts';
import type { Session } from './session.ts';
import { capsOf } from './shares.ts';

/*
 * A gated claim is two calls. The first reads the gate, its parent, and what is due behind it. The gate says how many jobs may
 * start, and the shares how many each partition gives. The second call takes these and writes the gate, if the gate has
 * not been written meanwhile. If it has, or if the jobs are gone, the claim begins again.
 */

const DEMAND = `
  SELECT * FROM @.gated_demand($1, $2, $3::text[], $4::int[], $5, $6::bigint[], $7::bigint[], $8::bigint[],
    $9::text[])`;
const CLAIM = `
  SELECT * FROM @.claim_gated($1, $2, $3, $4, $5::text[], $6::int[], $7::json, $8::bigint[], $9::int[], $10::smallint[],
    $11::bigint[], $12::bigint[], $13::int[], $14, $15::json, $16::text[])`;

type DemandRow = [
  now: number,
  version: number | null,
  gate: string,
  /** fresh_at, retry_at and suspect_at of the gate's row. */
  access: string,
  parentVersion: number | null,
  parent: string,
  waiting: string | null,
  room: string,
  probes: string | null,
];

type TakeRow = [now: number, snapshot: string, isDone: boolean, ...taken: TakenRow];

interface GateRead {
  readonly gate: GateRef;
  readonly version: number;
  readonly state: GateState;
}

/** A partition behind the gate. */
interface Waiting {
  readonly partition: Partition;
  readonly range: Range | null;
  /** Counted up to one more than the claim has places for. */
  readonly due: number;
  /** What the claim takes of it. */
  want: number;
}

interface Candidate {
  readonly id: string;
  readonly partition: number;
  readonly jobType: number;
}

interface Demand {
  readonly now: number;
  readonly gate: GateRead;
  readonly access: readonly (number | null)[];
  readonly parent: GateRead | null;
  readonly waiting: readonly Waiting[];
  /** How many more retries of a queue may start. Any number where nothing is said. */
  readonly room: ReadonlyMap<string, number>;
  /** While the gate is open: the jobs that are due first, of those that may start, and which of them this worker can run. */
  readonly candidates: readonly Candidate[];
  readonly runnable: readonly Candidate[];
  readonly limits: LimitRooms;
}

const START: Position = { dueAt: 0, seq: -1 };

export function claimGated(session: Session, request: GatedClaimRequest): Promise<GatedClaim> {
  return untilWritten(session, () => new GatedClaiming(session, request).claim());
}

class GatedClaiming {
  readonly #session: Session;
  readonly #request: GatedClaimRequest;
  readonly #queues: readonly string[];

  constructor(session: Session, request: GatedClaimRequest) {
    this.#session = session;
    this.#request = request;
    this.#queues = request.queues.map(({ queue }) => queue);
  }

  async claim(): Promise<GatedClaim> {
    const { now, demand } = await this.#demand();
    const due = demand === null ? { fresh: 0, retry: 0 } : dueIn(demand);
    if (demand === null || due.fresh + due.retry === 0) return { jobs: [], now, nextAt: null, events: [] };
    const random = (): number => this.#session.db.clock.random();
    const { worker, limit, queues } = this.#request;
    const asked = {
      ...due,
      canProbe: demand.runnable.length > 0,
      worker: workerKey(worker),
      places: limit,
      keptForRetries: queues.reduce((sum, { retry }) => sum + retry, 0),
    };
    const admission = admitClaim(demand.gate.state, demand.parent?.state ?? null, asked, now, random);
    const { nextAt, events } = admission;
    const only = oneOf(admission, demand.candidates, demand.runnable, random);
    // The jobs are gone that were counted.
    if (admission.movesAside && only === null) throw new GateConflict();
    if (only === null) this.#share(demand, admission);
    else {
      for (const one of demand.waiting) {
        if (one.partition.id !== only.partition) continue;
        one.want = 1;
        demand.limits.take(one.partition, 1);
      }
    }
    const wanted = demand.waiting.filter(({ want }) => want > 0);
    const rows = rowsFor(demand, admission);
    if (wanted.length > 0)
      return { ...(await this.#take(wanted, only?.id ?? null, rows, demand.limits, admission.epoch)), nextAt, events };
    if (rows.some(({ saves }) => saves)) await writeGates(this.#session, rows);
    return { jobs: [], now, nextAt, events };
  }

  async #demand(): Promise<{ readonly now: number; readonly demand: Demand | null }> {
    const { db, gatedPartitions, cursors, asides } = this.#session;
    const { resource, queues, limit } = this.#request;
    const gate: GateRef = { kind: 'resource', name: resource };
    const parentRef = parentGate(gate);
    const known = gatedPartitions.of(resource);
    const ranges = await cursors.ranges(known);
    const [row] = await db.lookUp<DemandRow>(DEMAND, [
      resource,
      parentRef?.name ?? null,
      texts(this.#queues),
      capsOf(queues),
      limit + 1,
      plain(known.map(({ id }) => id)),
      plain(ranges.map(({ from }) => from.dueAt)),
      plain(ranges.map(({ from }) => from.seq)),
      texts([...asides.readable(this.#queues, this.#request), ...asides.limited(this.#queues, this.#request)]),
    ]);
    const [now, version, state, access, parentVersion, parentState, waitingText, room, probes] = row as DemandRow;
    if (version === null) return { now, demand: null };
    const rangeOf = new Map(known.map(({ id }, index) => [id, ranges[index] as Range]));
    const waiting = ((JSON.parse(waitingText ?? '[]') as [...PartitionRow, due: number][]) ?? []).map(
      (one): Waiting => {
        const partition = toPartition(one.slice(0, 6) as PartitionRow);
        return { partition, range: rangeOf.get(partition.id) ?? null, due: one[6], want: 0 };
      },
    );
    gatedPartitions.set(
      resource,
      waiting.map(({ partition }) => partition),
    );
    const limits = await readUses(
      this.#session,
      waiting.map(({ partition }) => partition),
      now,
    );
    const candidates = ((JSON.parse(probes ?? '[]') ?? []) as [string, number, number][])
      .map(([id, partition, jobType]): Candidate => ({ id, partition, jobType }))
      .filter((one) => waiting.some(({ partition }) => partition.id === one.partition && limits.room(partition, 1) > 0))
      .slice(0, PROBE_CANDIDATES);
    const typeOf = await loadTypes(this.#session, candidates, this.#request.leaseMs);
    const rooms = numbersOrNull(room);
    const demand: Demand = {
      now,
      gate: { gate, version, state: stateOf(gate, state, now) },
      access: numbersOrNull(access),
      parent:
        parentRef === null || parentVersion === null
          ? null
          : { gate: parentRef, version: parentVersion, state: stateOf(parentRef, parentState, now) },
      waiting: gatedPartitions.inTurn(waiting),
      room: new Map(this.#queues.flatMap((queue, index) => (rooms[index] == null ? [] : [[queue, rooms[index]]]))),
      candidates,
      runnable: candidates.filter(({ jobType }) => canRun(this.#request, typeOf(jobType))),
      limits,
    };
    return { now, demand };
  }

  /** Shares what the gate admits, as `claim` shares its places. */
  #share({ waiting, room, limits }: Demand, { fresh, retry }: ClaimAdmission): void {
    const admitted = { fresh, retry };
    const left = new Map(room);
    const { gatedPartitions, turns } = this.#session;
    fillQuotas(this.#request, (queue, lane, count) => {
      const pays = lane === 'retry' ? 'retry' : 'fresh';
      const places = Math.min(count, admitted[pays], lane === 'retry' ? (left.get(queue) ?? count) : count);
      const ofLane = waiting.filter(({ partition }) => partition.queue === queue && partition.lane === lane);
      let taken = 0;
      for (const priority of new Set(ofLane.map(({ partition }) => partition.priority).sort((a, b) => a - b))) {
        const ofPriority = ofLane.filter(({ partition }) => partition.priority === priority);
        const lineIn = ({ partition }: Waiting): string => lineOf(partition);
        taken += fillLines(ofPriority, places - taken, turns, lineIn, (one, wanted) => {
          const given = limits.room(one.partition, Math.min(wanted, one.due - one.want));
          if (given > 0) {
            gatedPartitions.served(one.partition);
            turns.served(lineOf(one.partition));
          }
          limits.take(one.partition, given);
          one.want += given;
          return given;
        });
      }
      admitted[pays] -= taken;
      if (lane === 'retry' && left.has(queue)) left.set(queue, (left.get(queue) as number) - taken);
      return taken;
    });
  }

  async #take(
    wanted: readonly Waiting[],
    only: string | null,
    rows: readonly GateColumns[],
    limits: LimitRooms,
    epoch: number,
  ): Promise<Pick<GatedClaim, 'jobs' | 'now'>> {
    const { db, identity, workers, cursors } = this.#session;
    const { worker, leaseMs, queues } = this.#request;
    const partitions = wanted.map(({ partition }) => partition);
    // The only job is one of the first, wherever the cursor is.
    const from = wanted.map(({ range }) => (only === null && range !== null ? range.from : START));
    const [row] = await db.query<TakeRow>(CLAIM, [
      identity,
      await workers.intern(worker),
      leaseMs,
      CLAIM_BYTES,
      texts(this.#queues),
      capsOf(queues),
      JSON.stringify(rows),
      plain(partitions.map(({ id }) => id)),
      plain(partitions.map(({ queue }) => this.#queues.indexOf(queue) + 1)),
      plain(partitions.map(({ lane }) => LANE[lane])),
      plain(from.map(({ dueAt }) => dueAt)),
      plain(from.map(({ seq }) => seq)),
      plain(wanted.map(({ want }) => want)),
      only,
      limits.given(partitions),
      texts(partitions.map((partition) => limits.usesOf(partition))),
    ]);
    const [now, snapshot, isDone, ...taken] = row as TakeRow;
    if (!isDone) throw new GateConflict();
    const { jobs, last } = await holdTaken(this.#session, this.#request, { now, taken, partitions, epoch });
    if (only === null) {
      const found = wanted.flatMap(({ partition, range }) => foundIn(partition.id, range, last.get(partition.id)));
      cursors.advance(found, now, snapshot);
    }
    return { jobs, now };
  }
}

/** What is due behind the gate, as far as the queues have room for it. */
function dueIn({ waiting, room, limits }: Demand): { readonly fresh: number; readonly retry: number } {
  let fresh = 0;
  const retries = new Map<string, number>();
  for (const one of waiting) {
    const { queue, lane } = one.partition;
    const due = limits.room(one.partition, one.due);
    if (lane === 'retry') retries.set(queue, Math.min((retries.get(queue) ?? 0) + due, room.get(queue) ?? Infinity));
    else fresh += due;
  }
  return { fresh, retry: [...retries.values()].reduce((sum, due) => sum + due, 0) };
}

/** The rows of the gates: those that the claim writes, and those that must still be as they were read. */
function rowsFor({ now, gate, access, parent }: Demand, admission: ClaimAdmission): GateColumns[] {
  const write = (read: GateRead, state: GateState, events: GateWrite['events']): GateColumns =>
    gateColumns({ gate: read.gate, state, events }, read.version, now);
  const own = write(gate, admission.state, admission.events);
  const isSame = (before: number | null, after: number | null): boolean =>
    before === after || (before !== null && after !== null && before <= now && after <= now);
  const [fresh, retry, suspect] = access as [number | null, number | null, number];
  const saves =
    admission.state !== gate.state ||
    !isSame(fresh, own.fresh_at) ||
    !isSame(retry, own.retry_at) ||
    !isSame(suspect, own.suspect_at);
  const isParentCharged = parent !== null && admission.parent !== null && admission.parent !== parent.state;
  return [{ ...own, saves }, ...(isParentCharged ? [write(parent, admission.parent as GateState, [])] : [])];
}

/** Where the cursor of a partition is to go. A missed range was read together with what comes after it. */
function foundIn(partition: number, range: Range | null, last: Position | undefined): Found[] {
  if (last === undefined) return [];
  const after = { from: last, until: last, missed: null };
  if (range === null || range.missed === null) return [{ partition, range: after, last, isExhausted: false }];
  const { dueAt, seq } = range.until;
  const isPast = last.dueAt > dueAt || (last.dueAt === dueAt && last.seq > seq);
  return [
    { partition, range, last, isExhausted: isPast },
    ...(isPast ? [{ partition, range: after, last, isExhausted: false }] : []),
  ];
}
