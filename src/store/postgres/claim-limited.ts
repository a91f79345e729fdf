import { LANE } from '../codes.ts';
import { CLAIM_BYTES, type ClaimedJob, type LimitedClaim, type LimitedClaimRequest } from '../store.ts';
import type { TakenRow } from './claimed.ts';
import { numbersOrNull, plain, texts } from './connection/arrays.ts';
import { holdTaken } from './hold-taken.ts';
import type { Blocked, LimitRooms } from './limit-rooms.ts';
import { LimitConflict, roomsOf, untilTaken } from './limits.ts';
import { lineOf, type Partition, type PartitionRow, toPartition } from './partitions.ts';
import type { Session } from './session.ts';
import { capsOf, laneKey, type Room, share } from './shares.ts';
import { MOST_CANDIDATES } from './sql/partitions.ts';

/*
 * A limited claim is two calls, without a lock between them. The first reads which partitions are admissible, what is due
 * in each, and how much of their keys is in use. The limits say how many jobs may start, and the shares how many each
 * partition gives. The second takes those that still fit: other processes may have taken jobs, or places of a key, meanwhile. It parks the
 * partitions that have no room or no due job, so that no claim reads them again before that changes. sql/limits.ts says how.
 */

const DEMAND = 'SELECT * FROM @.limited_demand($1::text[], $2::int[], $3::text[], $4::bigint[], $5, $6, $7)';
const CLAIM = `
  SELECT * FROM @.claim_limited($1, $2, $3, $4, $5::text[], $6::int[], $7::json, $8::bigint[], $9::int[], $10::smallint[],
    $11::int[], $12::text[], $13::boolean[], $14::bigint[], $15::int[], $16::int[], $17::int[])`;

/** A claim without a job that has only parked partitions looks for others so often; then the worker comes again. */
const MOST_ROUNDS = 8;
/** Of each tier one partition is read for so many places, and at least some: to serve one costs a write, however many it gives. */
const PLACES_PER_READ = 4;
const FEWEST_READ = 8;
/** A claim ahead takes up to so many jobs of one partition. It reads twice as many as it then needs, and serves no more than those. */
const AHEAD_PER_READ = 32;

type DemandRow = [
  now: number,
  asides: string | null,
  waiting: string | null,
  settings: string | null,
  uses: string | null,
  room: string | null,
  nextAt: number | null,
];
type WaitingRow = [...PartitionRow, servedAt: number, due: number, hasMore: boolean, nextDueAt: number | null];
type TakeRow = [now: number, isStale: boolean, isCutShort: boolean | null, isWoken: boolean, ...taken: TakenRow];

/** An admissible partition. */
interface Waiting {
  readonly partition: Partition;
  readonly servedAt: number;
  readonly due: number;
  /** There are more than were counted. */
  readonly hasMore: boolean;
  readonly nextDueAt: number | null;
  /** What the claim takes of it. */
  want: number;
}

interface Demand {
  readonly now: number;
  readonly waiting: readonly Waiting[];
  readonly limits: LimitRooms;
  readonly room: Room;
  readonly nextAt: number | null;
}

/**
 * `mayGoOn`: partitions were parked, so others may be admissible that were not read. `isShort`: other processes had taken, or
 * locked, jobs that it wanted.
 */
interface Round extends LimitedClaim {
  readonly mayGoOn: boolean;
  readonly isShort?: boolean;
}

export async function claimLimited(session: Session, request: LimitedClaimRequest): Promise<LimitedClaim> {
  for (let rounds = 1; ; rounds++) {
    const round = await untilTaken(session, () => new LimitedClaiming(session, request).claim());
    const { mayGoOn, isShort = false, ...answer } = round;
    if (answer.jobs.length > 0 || !(mayGoOn || isShort)) return answer;
    // Jobs that stay locked are not asked for again and again, but with the next poll.
    if (rounds === MOST_ROUNDS) return { ...answer, nextAt: isShort ? null : answer.now };
  }
}

class LimitedClaiming {
  readonly #session: Session;
  readonly #request: LimitedClaimRequest;
  readonly #queues: readonly string[];
  readonly #breadth: number;

  constructor(session: Session, request: LimitedClaimRequest) {
    this.#session = session;
    this.#request = request;
    this.#queues = request.queues.map(({ queue }) => queue);
    const wanted = request.ahead ? (2 * request.limit) / AHEAD_PER_READ : request.limit / PLACES_PER_READ;
    this.#breadth = Math.min(MOST_CANDIDATES, Math.max(FEWEST_READ, Math.ceil(wanted)));
  }

  async claim(): Promise<Round> {
    const { limit } = this.#request;
    const demand = await this.#demand();
    const { now, limits } = demand;
    const waiting = this.#read(demand);
    if (waiting.length === 0) return { jobs: [], now, nextAt: demand.nextAt, mayGoOn: false };
    const wanted = this.#share(waiting, demand);
    // In the order in which the shares gave them places, and then those that get none.
    const read = [...wanted, ...waiting.filter((one) => !wanted.has(one))];
    const blocked = read.map(({ partition }) => limits.blocked(partition));
    const nextAt = earliest([demand.nextAt, ...read.map((one, index) => startsNext(one, blocked[index] ?? null))]);
    const full = new Set(read.flatMap((one) => (one.due > one.want || one.hasMore ? limits.full(one.partition) : [])));
    const seen = full.size > 0 && { full: [...full] };
    if (read.every((one, index) => one.want === 0 && !isParked(one, blocked[index] ?? null))) {
      return { jobs: [], now, nextAt, ...seen, mayGoOn: false };
    }
    const taken = await this.#take(read, blocked, limits);
    if (taken.jobs.length === 0 && taken.isStale) throw new LimitConflict();
    const isUncounted = read.some(({ due, hasMore, want }) => hasMore && want === due);
    const isShort = taken.jobs.length < read.reduce((sum, { want }) => sum + want, 0);
    if (taken.jobs.length === limit || taken.isCutShort || taken.isStale || isUncounted || isShort) {
      return { jobs: taken.jobs, now: taken.now, nextAt: taken.now, mayGoOn: false, isShort };
    }
    // Where as many were read as may be, there may be more.
    const mayGoOn = taken.isWoken || demand.waiting.length >= this.#breadth;
    return { jobs: taken.jobs, now: taken.now, nextAt: mayGoOn ? taken.now : nextAt, ...seen, mayGoOn };
  }

  async #demand(): Promise<Demand> {
    const { db, asides, gatedPartitions } = this.#session;
    const { queues, limit } = this.#request;
    for (;;) {
      const read = asides.limited(this.#queues, this.#request);
      const [row] = await db.lookUp<DemandRow>(DEMAND, [
        texts(this.#queues),
        capsOf(queues),
        texts(read),
        asides.known(this.#queues),
        this.#breadth,
        limit,
        this.#request.ahead ? AHEAD_PER_READ : 2 * PLACES_PER_READ,
      ]);
      const [now, asidesText, waitingText, settings, uses, room, nextAt] = row as DemandRow;
      if (asidesText !== null) {
        asides.set(this.#queues, asidesText);
        // There are partitions that it was not asked for.
        if (asides.limited(this.#queues, this.#request).some((queue) => !read.includes(queue))) continue;
      }
      const waiting = (JSON.parse(waitingText ?? '[]') as WaitingRow[]).map((one): Waiting => {
        const [servedAt, due, hasMore, nextDueAt] = one.slice(6) as [number, number, boolean, number | null];
        const partition = toPartition(one.slice(0, 6) as PartitionRow);
        return { partition, servedAt, due, hasMore, nextDueAt, want: 0 };
      });
      const rooms = numbersOrNull(room);
      return {
        now,
        // Two that were served in the same millisecond: this process knows which came first.
        waiting: gatedPartitions.inTurn(waiting).sort((a, b) => a.servedAt - b.servedAt),
        limits: roomsOf(settings, uses, now),
        room: new Map(
          this.#queues.flatMap((queue, index) =>
            rooms[index] == null ? [] : [[laneKey(queue, 'retry'), rooms[index] as number]],
          ),
        ),
        nextAt,
      };
    }
  }

  /** The partitions that the claim has to do with: when it claims ahead, the first of each tier that have enough to give. */
  #read({ waiting, limits }: Demand): readonly Waiting[] {
    const { limit, ahead = 0 } = this.#request;
    if (ahead === 0) return waiting;
    const given = new Map<string, number>();
    return waiting.filter(({ partition, due }) => {
      const tier = lineOf(partition);
      const before = given.get(tier) ?? 0;
      if (before >= limit) return false;
      given.set(tier, before + limits.room(partition, Math.min(due, AHEAD_PER_READ), 0));
      return true;
    });
  }

  /** Those that give jobs, in the order of their first one. */
  #share(waiting: readonly Waiting[], { limits, room }: Demand): ReadonlySet<Waiting> {
    const wanted = new Set<Waiting>();
    let places = this.#request.limit - (this.#request.ahead ?? 0);
    const { turns, gatedPartitions } = this.#session;
    share(this.#request, waiting, room, turns, (one, count) => {
      const given = limits.room(one.partition, Math.min(count, one.due - one.want), places);
      if (given === 0) return 0;
      places -= given;
      one.want += given;
      limits.take(one.partition, given);
      wanted.add(one);
      gatedPartitions.served(one.partition);
      turns.served(lineOf(one.partition));
      return given;
    });
    return wanted;
  }

  async #take(
    read: readonly Waiting[],
    blocked: readonly (Blocked | null)[],
    limits: LimitRooms,
  ): Promise<{ jobs: ClaimedJob[]; now: number; isStale: boolean; isCutShort: boolean; isWoken: boolean }> {
    const { db, identity, workers } = this.#session;
    const { worker, leaseMs, queues } = this.#request;
    const partitions = read.map(({ partition }) => partition);
    // One without a due job is parked until it has one, and waits for no key: it would be woken instead of one that has.
    const waitFor = read.map((one, index) => (one.due === 0 ? null : (blocked[index] ?? null)));
    const [row] = await db.query<TakeRow>(CLAIM, [
      identity,
      await workers.intern(worker),
      leaseMs,
      CLAIM_BYTES,
      texts(this.#queues),
      capsOf(queues),
      limits.given(partitions),
      plain(partitions.map(({ id }) => id)),
      plain(partitions.map(({ queue }) => this.#queues.indexOf(queue) + 1)),
      plain(partitions.map(({ lane }) => LANE[lane])),
      plain(read.map(({ want }) => want)),
      texts(partitions.map((partition) => limits.usesOf(partition))),
      plain(read.map(isEmpty)),
      plain(waitFor.map((one) => one?.until ?? null)),
      plain(waitFor.map((one) => one?.bound ?? null)),
      plain(waitFor.map((one) => one?.by ?? null)),
      // A key that has no place for one of them may have one for a retry that keeps its turn.
      plain(limits.free(partitions).filter((ord) => blocked.every((one) => one?.by !== ord || one.bound === null))),
    ]);
    const [now, isStale, isCutShort, isWoken, ...taken] = row as TakeRow;
    const { jobs } = await holdTaken(this.#session, this.#request, { now, taken, partitions, epoch: 0 });
    return { jobs, now, isStale, isCutShort: isCutShort === true, isWoken };
  }
}

/** All that is due in it is taken. */
function isEmpty({ due, hasMore, want }: Waiting): boolean {
  return want === due && !hasMore;
}

/** It leaves the place among those that claims read, until its time comes or its key has room. */
function isParked(one: Waiting, blocked: Blocked | null): boolean {
  return isEmpty(one) || (blocked !== null && blocked.by > 0);
}

/** When the next job of a partition that was read may start by time alone. */
function startsNext(one: Waiting, blocked: Blocked | null): number | null {
  const dueAt = isEmpty(one) ? one.nextDueAt : null;
  if (blocked === null) return dueAt;
  if (blocked.until === null) return null;
  return isEmpty(one) ? (dueAt === null ? null : Math.max(dueAt, blocked.until)) : blocked.until;
}

function earliest(times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null);
  return known.length === 0 ? null : Math.min(...known);
}
