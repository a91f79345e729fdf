import type { Mulligan } from '../mulligan.ts';

/*
 * Which names the database knows for gates. A healthy gate may have no row, and workers do not register the resources of
 * their definitions, so the newest jobs tell of them: some of each name, as definitions name resources, and some of each
 * queue, as a process may give a queue one.
 */

const MOST_GATES = 1_000;
/** Names and queues whose jobs are looked at. */
const MOST_GROUPS = 50;
/** More than one: a job that was enqueued by its name alone has no resource. */
const JOBS_OF_GROUP = 5;

type Reads = Pick<Mulligan, 'gates' | 'jobs' | 'stats' | 'workers'>;

/** Resources that a gate or a job has. */
export async function knownResources(mulligan: Reads): Promise<string[]> {
  const stats = await mulligan.stats();
  const some = (groups: object): string[] => Object.keys(groups).slice(0, MOST_GROUPS);
  const [heardOf, ...pages] = await Promise.all([
    mulligan.gates.list({ kind: 'resource', limit: MOST_GATES }),
    ...some(stats.names).map((name) => mulligan.jobs.list({ name, limit: JOBS_OF_GROUP })),
    ...some(stats.queues).map((queue) => mulligan.jobs.list({ queue, limit: JOBS_OF_GROUP })),
  ]);
  const ofJobs = pages.flat().flatMap(({ resource }) => resource ?? []);
  return [...new Set([...heardOf.map(({ name }) => name), ...ofJobs])];
}

/** Whether there was a job of this name, or a worker knows it. */
export async function isJobName(mulligan: Reads, name: string): Promise<boolean> {
  const [stats, workers] = await Promise.all([mulligan.stats(), mulligan.workers.list()]);
  return Object.hasOwn(stats.names, name) || workers.some(({ jobs }) => jobs.includes(name));
}
