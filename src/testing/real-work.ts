import { type AsyncHook, createHook, type HookCallbacks } from 'node:async_hooks';
import { systemClock } from '../clock.ts';

/**
 * Tells whether handlers wait for something real: a timer, a socket, a file, a child process.
 *
 * Node lists by kind what keeps its event loop alive (`process.getActiveResourcesInfo`). That is enough for all but timers: a
 * socket that was open before the job started counts too, because a handler may wait for the answer to a query on it. Timers
 * are another matter, because test runners have some of their own, which come and go. So those are told apart: only timers
 * that were set since the first of the running jobs started may be a handler's.
 */
export class RealWork implements Disposable {
  readonly #timers: Map<number, { hasRef?(): boolean }> = new Map();
  readonly #hook: AsyncHook;

  constructor() {
    const hooks: HookCallbacks & { trackPromises: boolean } = {
      init: (id, kind, _trigger, resource) => {
        if (kind === 'Timeout') this.#timers.set(id, resource);
      },
      destroy: (id) => void this.#timers.delete(id),
      // Newer versions of Node then spend no time on promises.
      trackPromises: false,
    };
    this.#hook = createHook(hooks).enable();
  }

  /** Call when no handler runs: the timers that are set now belong to none. */
  noHandlerRuns(): void {
    this.#timers.clear();
  }

  get isUnderWay(): boolean {
    return (
      [...this.#timers.values()].some((timer) => timer.hasRef?.() === true) || activeResources().some(mayBeWaitedFor)
    );
  }

  [Symbol.dispose](): void {
    this.#hook.disable();
  }
}

/** Timers are told apart above. The others are there all the time: channels to a terminal or a test runner, and servers. */
const notWaitedFor: ReadonlySet<string> = new Set([
  'Timeout',
  'Immediate',
  'MessagePort',
  'PipeWrap',
  'TTYWrap',
  'SignalWrap',
  'TCPServerWrap',
  'PipeServerWrap',
  'FSEventWrap',
  'StatWatcher',
]);

function mayBeWaitedFor(kind: string): boolean {
  return !notWaitedFor.has(kind);
}

function activeResources(): readonly string[] {
  // Runtimes other than Node may not have it.
  return process.getActiveResourcesInfo?.() ?? [];
}

/** Waits a moment in real time; answers how many whole milliseconds that took. */
export async function realMoment(): Promise<number> {
  const since = systemClock.monotonic();
  await new Promise<void>((resolve) => void systemClock.after(1, resolve));
  return Math.floor(systemClock.monotonic() - since);
}
