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

/** Names of which there was a job, or that a worker knows. */
export async function knownJobNames(mulligan: Reads): Promise<string[]> {
  const [stats, workers] = await Promise.all([mulligan.stats(), mulligan.workers.list()]);
  return [...new Set([...Object.keys(stats.names), ...workers.flatMap(({ jobs }) => jobs)])];
}

/** Whether a gate or a job has this resource, or it may be a key of one: keys that are well are not stored. */
export async function isResource(mulligan: Reads, name: string, known: readonly string[]): Promise<boolean> {
  if (known.includes(name)) return true;
  const parent = parentOf(name);
  if (parent === null) return false;
  return (
    known.some((one) => parentOf(one) === parent) || (await mulligan.gates.show(parent, { kind: 'parent' })).isKnown
  );
}

/** A misspelt name would be pinned without a word, and the gate that was meant would go on. */
export async function refuseUnknownResource(mulligan: Reads, name: string): Promise<void> {
  const { isKnown, history } = await mulligan.gates.show(name);
  if (isKnown || history.length > 0) return;
  const known = await knownResources(mulligan);
  if (await isResource(mulligan, name, known)) return;
  const meant = closest(name, known);
  const hint = meant === null ? 'mulligan gates list names those with a gate.' : `Did you mean ${meant}?`;
  const isJob = (await knownJobNames(mulligan)).includes(name);
  const reason = isJob ? 'It is a job name, and the soft gate of a job holds no jobs.' : hint;
  throw new Failure('NOT_FOUND', `there is no resource ${name}. ${reason} --force pins its gate before its first job.`);
}
