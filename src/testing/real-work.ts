import { systemClock } from '../clock.ts';

/**
 * Tells whether the process waits for something real: a timer, a socket, a file, a child process. Node lists what keeps
 * its event loop alive (`process.getActiveResourcesInfo`), by kind. A socket that was open before counts too: a handler may
 * wait for the answer to a query on it. Only timers that the process had while no job ran are left out, because a test
 * runner always has some.
 */
export class RealWork {
  #usualTimers: number = countTimers();

  /** While no job runs: what is set now belongs to no handler. */
  noJobRuns(): void {
    this.#usualTimers = Math.min(this.#usualTimers, countTimers());
  }

  get isUnderWay(): boolean {
    return countTimers() > this.#usualTimers || activeResources().some((kind) => !notWaitedFor.has(kind));
  }
}

/** What is there all the time: the channels to a terminal or to a test runner, and servers, which handlers do not wait for. */
const notWaitedFor: ReadonlySet<string> = new Set([
  'Timeout',
  'Immediate',
  'MessagePort',
  'PipeWrap',
  'Pipe',
  'TTYWrap',
  'SignalWrap',
  'TCPServerWrap',
  'PipeServerWrap',
  'FSEventWrap',
  'StatWatcher',
]);

function activeResources(): readonly string[] {
  // Runtimes other than Node may not have it.
  return process.getActiveResourcesInfo?.() ?? [];
}

function countTimers(): number {
  return activeResources().filter((kind) => kind === 'Timeout').length;
}

/** Waits a moment in real time; answers how many whole milliseconds that took. */
export async function realMoment(): Promise<number> {
  const since = systemClock.monotonic();
  await new Promise<void>((resolve) => void systemClock.after(1, resolve));
  return Math.floor(systemClock.monotonic() - since);
}
