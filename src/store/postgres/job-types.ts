import type { RetryPolicy } from '../../retry/policy.ts';
import type { NewJob } from '../store.ts';
import { formatPolicy, parsePolicy } from '../stored-policy.ts';
import { plain, texts } from './connection/arrays.ts';
import type { Database } from './connection/database.ts';

/** What the jobs of one definition share. It is stored once, never changed, and pointed at by number. */
export interface JobType {
  readonly id: number;
  /** The job type under which its queue and name are counted. */
  readonly countedAs: number;
  /** Where its jobs are enqueued. */
  readonly queue: string;
  readonly name: string;
  readonly retryQueue: string | null;
  readonly policy: RetryPolicy;
  /** Of the definition. It is stored in the text of the policy, so that each version has a type of its own. */
  readonly version: number | null;
}

/** More than there are definitions. Jobs with policies of their own may be any number, so memory has a limit. */
const MOST_CACHED = 10_000;

export class JobTypes {
  readonly #db: Database;
  #byId: Map<number, JobType> = new Map();
  /** Jobs of one definition share their policy as an object. */
  #byPolicy: WeakMap<RetryPolicy, Map<string, JobType>> = new WeakMap();
  /** For those that do not. */
  #byText: Map<string, JobType> = new Map();

  constructor(db: Database) {
    this.#db = db;
  }

  /** The types of these jobs, adding those that are new. */
  async intern(jobs: readonly NewJob[]): Promise<JobType[]> {
    const types = this.#known(jobs);
    if (!types.includes(undefined)) return types as JobType[];
    const missing = new Map<string, NewJob>();
    for (const [index, job] of jobs.entries()) if (types[index] === undefined) missing.set(textOf(job), job);
    const added = await this.#store([...missing.values()]);
    return jobs.map((job, index) => types[index] ?? this.#remember(job, added.get(textOf(job)) as JobType));
  }

  /** The types behind these numbers. */
  async load(ids: Iterable<number>): Promise<(id: number) => JobType> {
    const found = new Map<number, JobType>();
    const missing: number[] = [];
    for (const id of new Set(ids)) {
      const known = this.#byId.get(id);
      if (known === undefined) missing.push(id);
      else found.set(id, known);
    }
    if (missing.length > 0) {
      const rows = await this.#db.query<[number, number, string, string, string | null, string]>(
        'SELECT id, counted_as, queue, name, retry_queue, policy FROM @.job_types WHERE id = ANY ($1::int[])',
        [plain(missing)],
      );
      for (const [id, countedAs, queue, name, retryQueue, policy] of rows) {
        const type = { id, countedAs, queue, name, retryQueue, ...parsePolicy(policy) };
        found.set(id, type);
        this.#byId = bounded(this.#byId).set(id, type);
      }
    }
    return (id) => found.get(id) as JobType;
  }

  #known(jobs: readonly NewJob[]): (JobType | undefined)[] {
    const types: (JobType | undefined)[] = [];
    let last: NewJob | null = null;
    for (const job of jobs) {
      // Usually each is of the same type as the one before.
      if (last !== null && isAlike(job, last)) types.push(types.at(-1));
      else types.push(this.#byPolicy.get(job.policy)?.get(keyOf(job)) ?? this.#byText.get(textOf(job)));
      last = job;
    }
    return types;
  }

  async #store(jobs: readonly NewJob[]): Promise<Map<string, JobType>> {
    const rows = await this.#db.query<[ord: number, id: number, countedAs: number]>(
      'SELECT * FROM @.job_types_of($1::text[], $2::text[], $3::text[], $4::text[])',
      [
        texts(jobs.map(({ queue }) => queue)),
        texts(jobs.map(({ name }) => name)),
        texts(jobs.map(({ retryQueue }) => retryQueue)),
        texts(jobs.map(({ policy, version }) => formatPolicy(policy, version))),
      ],
    );
    return new Map(
      rows.map(([ord, id, countedAs]) => {
        const job = jobs[ord - 1] as NewJob;
        const { queue, name, retryQueue, policy } = job;
        return [textOf(job), { id, countedAs, queue, name, retryQueue, policy, version: job.version ?? null }];
      }),
    );
  }

  #remember(job: NewJob, type: JobType): JobType {
    this.#byText = bounded(this.#byText).set(textOf(job), type);
    const alike = this.#byPolicy.get(job.policy) ?? new Map<string, JobType>();
    this.#byPolicy.set(job.policy, alike.set(keyOf(job), type));
    return type;
  }
}

function bounded<Key>(map: Map<Key, JobType>): Map<Key, JobType> {
  return map.size >= MOST_CACHED ? new Map() : map;
}

function isAlike(a: NewJob, b: NewJob): boolean {
  return (
    a.policy === b.policy &&
    a.name === b.name &&
    a.queue === b.queue &&
    a.retryQueue === b.retryQueue &&
    a.version === b.version
  );
}

function keyOf({ queue, name, retryQueue, version }: NewJob): string {
  return JSON.stringify([queue, name, retryQueue, version]);
}

function textOf(job: NewJob): string {
  return keyOf(job) + JSON.stringify(job.policy);
}
