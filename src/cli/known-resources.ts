import { closest } from '../config.ts';
import type { Mulligan } from '../mulligan.ts';
import { parentOf } from '../store/gates.ts';
import { Failure } from './failure.ts';

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

/** A misspelt name would be pinned without a word, and the gate that was meant would go on. */
export async function refuseUnknownResource(mulligan: Reads, name: string): Promise<void> {
  const { isKnown, history } = await mulligan.gates.show(name);
  if (isKnown || history.length > 0) return;
  const known = await knownResources(mulligan);
  if (known.includes(name) || (await isKeyOf(mulligan, parentOf(name), known))) return;
  const meant = closest(name, known);
  const hint = meant === null ? 'mulligan gates list names those with a gate.' : `Did you mean ${meant}?`;
  const isJob = await isJobName(mulligan, name);
  const reason = isJob ? 'It is a job name, and the soft gate of a job holds no jobs.' : hint;
  throw new Failure('NOT_FOUND', `there is no resource ${name}. ${reason} --force pins its gate before its first job.`);
}

/** Keys that are well are not stored, so any key of a parent may be meant. */
async function isKeyOf({ gates }: Reads, parent: string | null, known: readonly string[]): Promise<boolean> {
  if (parent === null) return false;
  return known.some((one) => parentOf(one) === parent) || (await gates.show(parent, { kind: 'parent' })).isKnown;
}
