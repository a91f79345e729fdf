import type { Enqueued, NewJob } from '../store.ts';

/* New jobs on their way to the thread, and the answer: what jobs share travels once. */

/** What many jobs share. */
type SharedParts = Pick<NewJob, 'name' | 'queue' | 'retryQueue' | 'resource' | 'priority' | 'policy' | 'keyLife'>;

/** `of` is the place in what is shared. */
type OwnParts = readonly [
  of: number,
  id: string,
  payload: string,
  delayMs: number,
  dueAt: number | null,
  key: string | null,
];

export type PackedNewJobs = readonly [own: readonly OwnParts[], shared: readonly SharedParts[]];

export function packNewJobs(jobs: readonly NewJob[]): PackedNewJobs {
  const shared: SharedParts[] = [];
  const own = jobs.map((job): OwnParts => {
    if (!sharesWith(job, shared.at(-1))) {
      const { name, queue, retryQueue, resource, priority, policy, keyLife } = job;
      shared.push({ name, queue, retryQueue, resource, priority, policy, keyLife });
    }
    return [shared.length - 1, job.id, job.payload, job.delayMs, job.dueAt, job.key];
  });
  return [own, shared];
}

function sharesWith(job: NewJob, last: SharedParts | undefined): boolean {
  return (
    job.policy === last?.policy &&
    job.name === last.name &&
    job.queue === last.queue &&
    job.retryQueue === last.retryQueue &&
    job.resource === last.resource &&
    job.priority === last.priority &&
    job.keyLife === last.keyLife
  );
}

export function unpackNewJobs([own, shared]: PackedNewJobs): NewJob[] {
  return own.map(([of, id, payload, delayMs, dueAt, key]) => {
    const { name, queue, retryQueue, resource, priority, policy, keyLife } = shared[of] as SharedParts;
    return { id, name, queue, retryQueue, resource, priority, payload, policy, delayMs, dueAt, key, keyLife };
  });
}

/** Only those whose key another job holds, by their place. */
export type PackedEnqueued = readonly (readonly [index: number, holder: string])[];

export function packEnqueued(answers: readonly Enqueued[]): PackedEnqueued {
  return answers.flatMap(({ id, existed }, index) => (existed ? [[index, id] as const] : []));
}

export function unpackEnqueued(packed: PackedEnqueued, jobs: readonly NewJob[]): Enqueued[] {
  const answers = jobs.map(({ id }): Enqueued => ({ id, existed: false }));
  for (const [index, holder] of packed) answers[index] = { id: holder, existed: true };
  return answers;
}
