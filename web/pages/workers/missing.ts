import type { RegisteredWorker } from '../../client/answers.ts';

/** Workers that should have been seen, but for those that another of their name has replaced since. */
export function missingOf(workers: readonly RegisteredWorker[]): RegisteredWorker[] {
  return workers.filter((worker) => worker.state !== 'alive' && !isReplaced(worker, workers));
}

function isReplaced({ name, lastSeenAt }: RegisteredWorker, workers: readonly RegisteredWorker[]): boolean {
  return name !== null && workers.some((other) => other.name === name && other.startedAt > lastSeenAt);
}
