import type { Mulligan } from './mulligan.ts';

/** The names of queues that hold or held a job, are paused, or are served by a worker: any other name may be misspelt. */
export async function knownQueues({ queues, workers }: Pick<Mulligan, 'queues' | 'workers'>): Promise<string[]> {
  const [stored, registered] = await Promise.all([queues.list(), workers.list()]);
  return [...new Set([...stored.map(({ queue }) => queue), ...registered.flatMap((worker) => worker.queues)])];
}
