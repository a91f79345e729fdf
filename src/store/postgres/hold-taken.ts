import { type Lane, lanes } from '../../job.ts';
import type { ClaimedJob, ClaimRequest } from '../store.ts';
import { loadTypes } from './claim.ts';
import { claimedJob, readJobs, readLeases, type TakenRow } from './claimed.ts';
import type { Lease } from './leases.ts';
import type { Partition } from './partitions.ts';
import type { Position } from './scan/scan-cursor.ts';
import type { Session } from './session.ts';
import { laneKey } from './shares.ts';

/** What a call has taken, and from which partitions. */
interface Taken {
  readonly now: number;
  readonly taken: TakenRow;
  readonly partitions: readonly Partition[];
  readonly epoch: number;
}

/** The jobs that a call has taken, which this process holds now, and the last position of each partition. */
export async function holdTaken(
  session: Session,
  { worker, leaseMs, queues }: Pick<ClaimRequest, 'worker' | 'leaseMs' | 'queues'>,
  { now, taken, partitions, epoch }: Taken,
): Promise<{ readonly jobs: ClaimedJob[]; readonly last: ReadonlyMap<number, Position> }> {
  const stored = readJobs(taken);
  const typeOf = await loadTypes(session, stored, leaseMs);
  const leaseOf = new Map<string, Lease>();
  const numbers = readLeases(taken);
  for (let at = 0; at < numbers.length; at += 3) {
    const [id, queue, lane] = numbers.slice(at, at + 3) as [number, number, number];
    leaseOf.set(laneKey(queues[queue - 1]?.queue as string, lanes[lane] as Lane), { id, held: 0 });
  }
  const holding = { worker, claimedAt: now, leaseEndsAt: now + leaseMs, cancelRequested: false, alone: false };
  const partitionOf = new Map(partitions.map((partition) => [partition.id, partition]));
  const last = new Map<number, Position>();
  const jobs = stored.map((job) => {
    const partition = partitionOf.get(job.partition) as Partition;
    const jobType = typeOf(job.jobType);
    const lease = leaseOf.get(laneKey(partition.queue, partition.lane)) as Lease;
    lease.held++;
    const limits = partition.limits.length > 0 ? partition.limits : job.limits;
    session.leases.hold(job.id, job.run, { partition, jobType, limits }, lease);
    last.set(partition.id, job);
    return claimedJob({ ...job, limits }, partition, jobType, holding, epoch);
  });
  return { jobs, last };
}
