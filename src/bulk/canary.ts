import type { Clock } from '../clock.ts';
import { formatDuration } from '../duration.ts';
import type { Job } from '../job.ts';
import type { StoredError } from '../retry/outcome.ts';
import { getAll } from '../store/page.ts';
import type { Store } from '../store/store.ts';

/*
 * The first jobs of a redrive show whether the rest would fare better than before. They are watched until each has completed.
 * One that is cancelled stops the rest, and all that counts against a job counts here: a run that failed or crashed, whatever the error. A fix that trades one
 * error for another is none. What costs no attempt (a gate that is not closed, a snooze, a release) is waited for.
 */

const LOOK_EVERY_MS = 250;

export interface CanaryProgress {
  readonly jobs: number;
  readonly ended: number;
}

/** Null when all ended well, else why not. */
export async function watchCanaries(
  store: Pick<Store, 'get' | 'runs'>,
  clock: Clock,
  ids: readonly string[],
  options: {
    /** Runs before this time are not looked at. */
    readonly since: number;
    readonly timeoutMs: number;
    readonly signal?: AbortSignal | undefined;
    readonly onProgress: (progress: CanaryProgress) => void;
  },
): Promise<string | null> {
  const { since, timeoutMs, signal, onProgress } = options;
  const giveUpAt = clock.monotonic() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    const failures: string[] = [];
    // One that is gone was discarded or pruned: it tells nothing.
    let ended = ids.length;
    for await (const job of getAll(store, ids)) {
      const why = await failureOf(store, job, since);
      if (why !== null) failures.push(why);
      if (job.finishedAt === null) ended--;
    }
    onProgress({ jobs: ids.length, ended });
    if (failures.length > 0) return `${failures.length} of ${ids.length} canaries did not complete. ${failures[0]}`;
    if (ended === ids.length) return null;
    if (clock.monotonic() >= giveUpAt) {
      const waited = formatDuration(timeoutMs);
      return `${ids.length - ended} of ${ids.length} canaries have not ended in ${waited}. Is a worker running, and a queue or gate not in the way?`;
    }
    await new Promise<void>((resolve) => clock.after(LOOK_EVERY_MS, resolve));
  }
}

/** Why this canary shows that the rest would fail; null while nothing does. */
async function failureOf(store: Pick<Store, 'runs'>, job: Job, since: number): Promise<string | null> {
  // It shows nothing about the rest, so it does not let them follow.
  if (job.state === 'cancelled') return `${job.id} (${job.name}) was cancelled`;
  if (job.runs === 0) return null;
  // It was dead when the operation began, so it has died again. Not by time: both may have been in one millisecond.
  if (job.state === 'dead') return failureText(job, job.lastError, 'dead');
  const bad = (await store.runs(job.id)).find(({ startedAt, counted, outcome }) => {
    return startedAt > since && counted && (outcome === 'failed' || outcome === 'crashed');
  });
  return bad === undefined ? null : failureText(job, bad.error, bad.outcome);
}

function failureText({ id, name }: Job, error: StoredError | null, outcome: string): string {
  return `${id} (${name}): ${error === null ? outcome : `${error.name}: ${error.message}`}`;
}
