import { type Lane, lanes } from '../../job.ts';
import { steady, withRetries } from '../../retrying.ts';
import { LANE } from '../codes.ts';
import { CLAIM_BYTES, type Claim, type ClaimedJob, type ClaimRequest, GATED_NAMED } from '../store.ts';
import type { Candidate, CandidatesOfSet } from './candidates.ts';
import { type ClaimHeader, type ClaimRow, claimedJob, readClaim, type StoredJob } from './claimed.ts';
import { plain, texts } from './connection/arrays.ts';
import { isPassing } from './connection/failure.ts';
import type { JobType } from './job-types.ts';
import type { Lease } from './leases.ts';
import { lineOf, type Partition } from './partitions.ts';
import type { Position, Range } from './scan/scan-cursor.ts';
import type { Session } from './session.ts';
import { capsOf, laneKey, share } from './shares.ts';
import { whatIsLeft } from './what-is-left.ts';

/*
 * A claim is a few calls of one SQL function, usually one. SQL takes, TypeScript shares:
 *
 *   1. The candidates are the partitions that were offered with the last answer. Each gets a `want`: what the shares give
 *      it even when all partitions have plenty of due jobs.
 *   2. The function counts what is due. When everything fits it takes everything, else what is wanted of each.
 *   3. With the counts, the shares say what else each partition gets. When places are left for jobs that are due, or a
 *      partition was offered that has not been read, step 2 is done again.
 */

const CLAIM = `
  SELECT * FROM @.claim($1, $2, $3, $4, $5, $6::text[], $7::boolean[], $8::int[], $9::bigint[], $10,
    $11::bigint[], $12::int[], $13::smallint[], $14::boolean[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[],
    $19::int[], $20::int[], $21::text[], $22::bigint[], $23::text[])`;

/** A claim that reads one partition without due jobs after the other ends after this many calls, and the worker comes again. */
const MOST_CALLS = 32;
/**
 * Among many partitions the places are soon filled, so in all only so many times as many due jobs are counted, of each line
 * as many: when what is counted fits into the places, all of it is taken. Among few all are: a claim that took everything it had counted would take retries while fresh jobs wait that it had not.
 */
const COUNTED_TIMES = 2;
const LOAD_AGAIN_MS = 100;

export async function claim(session: Session, request: ClaimRequest): Promise<Claim> {
  for (;;) {
    const claiming = new Claiming(session, request);
    const backScan = session.cursors.backScan();
    const answer = await claiming.claim();
    // It ran beside the claim. A claim without a job goes again when the back-scan has found one, or jobs aside were found.
    const hasFound = await backScan;
    if (answer.jobs.length > 0 || !(hasFound || claiming.isOutdated)) return answer;
  }
}

/** What a partition gives in the course of a claim. */
interface Supply {
  readonly candidate: Candidate;
  readonly jobs: ClaimedJob[];
  /** How many jobs it can give in all, those that it gave included; infinite as long as it has not been read. */
  canGive: number;
}

/** A partition that is read by a call. */
interface Given {
  readonly supply: Supply;
  readonly range: Range;
  readonly want: number;
  /** False for one that is only counted. */
  readonly isOpen: boolean;
  /** So many of its due jobs are counted at the most: `p_most`. */
  readonly most: number;
  /** What it gave. */
  taken: number;
  last: Position | null;
  lease: Lease | null;
}

class Claiming {
  readonly #session: Session;
  readonly #request: ClaimRequest;
  readonly #queues: readonly string[];
  /** The queues whose partitions it reads. */
  readonly #read: readonly string[];
  /** Those of limited partitions that `claimLimited` would read for this worker. */
  readonly #limited: readonly string[];
  readonly #candidates: CandidatesOfSet;
  readonly #supplies: Map<number, Supply> = new Map();
  readonly #room: Map<string, number> = new Map();
  #header: ClaimHeader | null = null;
  #nextDueAt: number | null = null;
  #count = 0;
  #bytes = 0;
  /** There are jobs aside or behind limits that this worker may read, which this claim has not asked about. */
  isOutdated = false;

  constructor(session: Session, request: ClaimRequest) {
    this.#session = session;
    this.#request = request;
    this.#queues = request.queues.map(({ queue }) => queue);
    this.#read = session.asides.readable(this.#queues, request);
    this.#limited = session.asides.limited(this.#queues, request);
    this.#candidates = session.candidates.of(this.#read);
  }

  async claim(): Promise<Claim> {
    let calls = 0;
    for (let wants = this.#wants(); calls === 0 || wants.size > 0; wants = this.#wants()) {
      try {
        await this.#call(wants);
      } catch (error) {
        // What was taken before is leased to this worker, and must not be lost.
        if (this.#count === 0) throw error;
        this.#comeAgain();
        break;
      }
      if (this.#count >= this.#request.limit || this.#header?.isCutShort) break;
      if (++calls === MOST_CALLS) {
        this.#comeAgain();
        break;
      }
    }
    if (this.isOutdated) this.#comeAgain();
    const { now, gated, isLimited } = this.#header as ClaimHeader;
    const nextDueAt = this.#count >= this.#request.limit ? null : this.#nextDueAt;
    return {
      jobs: this.#inOrder(),
      now,
      nextDueAt,
      suspectsWait: this.#doSuspectsWait(),
      gated: [...new Set(gated)].slice(0, GATED_NAMED),
      limited: isLimited || this.isOutdated,
    };
  }

  /** None of a queue waits while another one runs, such as the one that was just taken. */
  #doSuspectsWait(): boolean {
    const { suspectsWait } = this.#header as ClaimHeader;
    return this.#queues.some((queue, index) => suspectsWait[index] && this.#taken(queue, 'suspect') === 0);
  }

  #comeAgain(): void {
    this.#nextDueAt = (this.#header as ClaimHeader).now;
  }

  /** How many more jobs each partition should give, as far as is known; those that should give none are left out. */
  #wants(): Map<number, number> {
    for (const candidate of this.#candidates.list) {
      const { id } = candidate.partition;
      if (!this.#supplies.has(id)) this.#supplies.set(id, { candidate, jobs: [], canGive: Number.POSITIVE_INFINITY });
    }
    const shares = new Map<number, number>();
    this.#share(({ id }, count) => {
      const before = shares.get(id) ?? 0;
      const given = Math.min(count, (this.#supplies.get(id) as Supply).canGive - before);
      shares.set(id, before + given);
      return given;
    });
    // A partition that has given more than its share leaves less to the others.
    let left = this.#request.limit - this.#count;
    const wants = new Map<number, number>();
    for (const [id, places] of shares) {
      const want = Math.min(left, places - (this.#supplies.get(id) as Supply).jobs.length);
      if (want > 0) wants.set(id, want);
      left -= Math.max(0, want);
    }
    return wants;
  }

  /** The jobs in the order in which the shares give them. Their lines have had their turn. */
  #inOrder(): ClaimedJob[] {
    const { turns } = this.#session;
    const givers = [...this.#supplies.values()].filter(({ jobs }) => jobs.length > 0);
    const [first, ...others] = givers;
    if (first !== undefined && others.length === 0) {
      turns.served(lineOf(first.candidate.partition));
      return first.jobs;
    }
    const ordered: ClaimedJob[] = [];
    const given = new Map<number, number>();
    // All of them were taken, so no room is asked for again.
    const candidates = givers.map(({ candidate }) => candidate);
    share(this.#request, candidates, new Map(), turns, ({ partition }, count) => {
      const from = given.get(partition.id) ?? 0;
      const some = (this.#supplies.get(partition.id) as Supply).jobs.slice(from, from + count);
      given.set(partition.id, from + some.length);
      ordered.push(...some);
      if (some.length > 0) turns.served(lineOf(partition));
      return some.length;
    });
    return ordered;
  }

  #share(take: (partition: { readonly id: number }, count: number) => number): void {
    const candidates = [...this.#supplies.values()].map(({ candidate }) => candidate);
    share(this.#request, candidates, this.#room, this.#session.turns, ({ partition }, count) => take(partition, count));
  }

  async #call(wants: ReadonlyMap<number, number>): Promise<void> {
    const { db, cursors, leases } = this.#session;
    const limit = this.#request.limit - this.#count;
    const given = await this.#given(wants);
    const [row] = await db.query<ClaimRow>(CLAIM, await this.#values(given));
    const { header, jobs } = readClaim(row as ClaimRow);
    const typeOf = await loadTypes(this.#session, jobs, this.#request.leaseMs);
    this.#header = header;
    const holding = {
      worker: this.#request.worker,
      claimedAt: header.now,
      leaseEndsAt: header.now + this.#request.leaseMs,
      cancelRequested: false,
      alone: false,
    };
    const leaseOf = new Map<string, Lease>();
    for (let at = 0; at < header.leases.length; at += 3) {
      const [id, queue, lane] = header.leases.slice(at, at + 3) as [number, number, number];
      leaseOf.set(laneKey(this.#queues[queue - 1] as string, lanes[lane] as Lane), { id, held: 0 });
    }
    const givenOf = new Map(given.map((one) => [one.supply.candidate.partition.id, one]));
    for (const job of jobs) {
      const giving = givenOf.get(job.partition) as Given;
      const { partition } = giving.supply.candidate;
      const jobType = typeOf(job.jobType);
      giving.lease ??= leaseOf.get(laneKey(partition.queue, partition.lane)) as Lease;
      giving.lease.held++;
      leases.hold(job.id, job.run, { partition, jobType, limits: job.limits }, giving.lease);
      giving.supply.jobs.push(claimedJob(job, partition, jobType, holding));
      giving.taken++;
      giving.last = job;
      this.#bytes += Buffer.byteLength(job.payload);
    }
    this.#count += jobs.length;
    const found = given.flatMap(({ supply, range, want, most, taken, last }, index) => {
      const due = header.due[index] ?? null;
      const { rest, isExhausted, isContended } = whatIsLeft({
        due,
        most,
        want,
        taken,
        isMissed: range.missed !== null,
      });
      supply.canGive = supply.jobs.length + (isContended ? 0 : rest);
      if (taken > 0) this.#candidates.served(supply.candidate);
      return due === null ? [] : [{ partition: supply.candidate.partition.id, range, last, isExhausted }];
    });
    cursors.advance(found, header.now, header.snapshot);
    if (header.nextDueAt !== null) this.#nextDueAt = Math.min(header.nextDueAt, this.#nextDueAt ?? header.nextDueAt);
    if (header.offer !== null) this.#candidates.offer(header.offer);
    if (header.asides !== null) this.#setAsides(header.asides);
    // The first call of a process is given no partition, and only asks which ones there are.
    if (given.length === 0) return;
    this.#setRoom(header);
    if (this.#candidates.known !== null) return;
    const lines = new Map<string, { due: number; partitions: number }>();
    for (const [index, { supply }] of given.entries()) {
      const line = lineOf(supply.candidate.partition);
      const { due, partitions } = lines.get(line) ?? { due: 0, partitions: 0 };
      lines.set(line, { due: due + (header.due[index] ?? 0), partitions: partitions + 1 });
    }
    this.#candidates.tune(lines.values(), limit);
  }

  #setAsides(text: string): void {
    const { asides } = this.#session;
    asides.set(this.#queues, text);
    const readable = asides.readable(this.#queues, this.#request);
    const limited = asides.limited(this.#queues, this.#request);
    this.isOutdated ||=
      readable.some((queue) => !this.#read.includes(queue)) || limited.some((queue) => !this.#limited.includes(queue));
  }

  /** What this call reads: all that may give a job. Of suspects it is always counted whether they wait. */
  async #given(wants: ReadonlyMap<number, number>): Promise<Given[]> {
    const supplies = [...this.#supplies.values()].filter(
      ({ candidate, jobs, canGive }) => canGive > jobs.length || candidate.partition.lane === 'suspect',
    );
    const ranges = await this.#session.cursors.ranges(supplies.map(({ candidate }) => candidate.partition));
    const limit = this.#request.limit - this.#count;
    const areMany = this.#candidates.known === null;
    const lines = Map.groupBy(areMany ? supplies : [], ({ candidate }) => lineOf(candidate.partition));
    const countedIn = (partition: Partition): number => {
      if (!areMany) return limit;
      const ofLine = lines.get(lineOf(partition)) as Supply[];
      return Math.ceil((COUNTED_TIMES * limit) / lines.size / ofLine.length);
    };
    const trials = new Map(this.#request.queues.map(({ queue, suspect }) => [queue, suspect > 0]));
    return supplies.map((supply, index) => {
      const { partition } = supply.candidate;
      const want = wants.get(partition.id) ?? 0;
      const isOpen = trials.get(partition.queue) === (partition.lane === 'suspect');
      const most = isOpen ? Math.min(limit, Math.max(want, countedIn(partition))) : 1;
      return { supply, range: ranges[index] as Range, want, isOpen, most, taken: 0, last: null, lease: null };
    });
  }

  async #values(given: readonly Given[]): Promise<unknown[]> {
    const { worker, leaseMs, limit, queues } = this.#request;
    const partitions = given.map(({ supply }) => supply.candidate.partition);
    return [
      this.#session.identity,
      await this.#session.workers.intern(worker),
      leaseMs,
      limit - this.#count,
      Math.max(0, CLAIM_BYTES - this.#bytes),
      texts(this.#queues),
      plain(queues.map(({ suspect }) => suspect > 0)),
      capsOf(queues),
      this.#candidates.known ?? null,
      this.#candidates.breadth,
      plain(partitions.map(({ id }) => id)),
      plain(partitions.map(({ queue }) => this.#queues.indexOf(queue) + 1)),
      plain(partitions.map(({ lane }) => LANE[lane])),
      plain(given.map(({ isOpen }) => isOpen)),
      plain(given.map(({ range }) => range.from.dueAt)),
      plain(given.map(({ range }) => range.from.seq)),
      plain(given.map(({ range }) => range.until.dueAt)),
      plain(given.map(({ range }) => range.until.seq)),
      plain(given.map(({ want }) => want)),
      plain(given.map(({ most }) => most)),
      texts(this.#read),
      this.#session.asides.known(this.#queues),
      texts(this.#limited),
    ];
  }

  /** The answer says how many more may start; what this claim has taken before is not in it. */
  #setRoom({ room }: ClaimHeader): void {
    for (const [index, { queue, suspect }] of this.#request.queues.entries()) {
      const free = room[index] ?? null;
      const lane = suspect > 0 ? 'suspect' : 'retry';
      // Of suspects the answer knows only those in the ranges that were read.
      if (free === null || (lane === 'suspect' && this.#hasUnread(queue, lane))) continue;
      this.#room.set(laneKey(queue, lane), free + this.#taken(queue, lane));
    }
  }

  #hasUnread(queue: string, lane: Lane): boolean {
    return [...this.#supplies.values()].some(
      ({ candidate: { partition }, canGive }) =>
        partition.queue === queue && partition.lane === lane && canGive === Infinity,
    );
  }

  #taken(queue: string, lane: Lane): number {
    let taken = 0;
    for (const { candidate, jobs } of this.#supplies.values()) {
      if (candidate.partition.queue === queue && candidate.partition.lane === lane) taken += jobs.length;
    }
    return taken;
  }
}

/** The jobs are leased to this worker by now, so what is still to be read is asked for as long as the lease lasts. */
export function loadTypes(
  { db, jobTypes }: Session,
  jobs: readonly Pick<StoredJob, 'jobType'>[],
  leaseMs: number,
): Promise<(id: number) => JobType> {
  const ids = new Set(jobs.map(({ jobType }) => jobType));
  const options = { policy: steady(LOAD_AGAIN_MS), isTransient: isPassing, giveUpAfterMs: leaseMs };
  return withRetries(db.clock, options, () => jobTypes.load(ids));
}
