import { type AsyncHook, createHook, executionAsyncResource, type HookCallbacks } from 'node:async_hooks';
import { MessagePort } from 'node:worker_threads';
import { systemClock } from '../clock.ts';
import { ThreadPoolWork } from './thread-pool-work.ts';
import { pendingTurns } from './virtual-clock.ts';

/**
 * Tells a drain whether handlers wait for something real. There are three answers:
 *
 * - `pending`: they may wait for work that is visible. Virtual time then runs as fast as real time. Visible are:
 *   - what keeps the event loop alive, by kind (`process.getActiveResourcesInfo`). A socket that was open before the job
 *     started counts too, because a handler may wait for the answer to a query on it;
 *   - timers set since the first of the running jobs started. Test runners have timers of their own, which come and go;
 *   - worker threads started since then, until they have ended, unless they are not referenced;
 *   - immediates, except those of virtual clocks;
 *   - message ports, when there are more than before the first of the running jobs started: test runners have some too.
 *     A SQLite store has one while it waits for its thread;
 *   - work in the thread pool, by async hooks: see ThreadPoolWork.
 * - `unknown`: nothing is visible, but a handler has just started, or the process has just been called back from outside.
 *   Virtual time stands still for GRACE_MS of real time, in which invisible work can answer. A process that never gets quiet
 *   has virtual time run as fast as real time.
 * - `none`: nothing is visible, and the process was quiet. Virtual time may jump. It takes no grace after a virtual timer
 *   has fired: a handler that sleeps on the virtual clock a thousand times would pay a thousand times.
 *
 * It cannot see, and waits no longer than the grace for: an answer from a worker thread that is not referenced or was
 * referenced before the job started, WebAssembly.compile, `backup` of node:sqlite, Atomics.waitAsync, a
 * module that Vitest loads over its pipe. Outside Node the
 * hooks may report nothing, which leaves what keeps the event loop alive.
 */
export type RealWorkState = 'pending' | 'unknown' | 'none';

const GRACE_MS = 20;
const LONGEST_STANDSTILL_MS = 200;

export class RealWork implements Disposable {
  readonly #timers: Map<number, { hasRef?(): boolean }> = new Map();
  readonly #threads: Map<number, { hasRef?(): boolean }> = new Map();
  readonly #threadPool: ThreadPoolWork = new ThreadPoolWork();
  readonly #hook: AsyncHook;
  #portsBefore = 0;
  #activeAt = 0;
  /** Since when the answer has been `unknown`; null when it was another. */
  #unknownSince: number | null = null;

  constructor() {
    const hooks: HookCallbacks & { trackPromises: boolean } = {
      init: (id, kind, _trigger, resource) => {
        if (kind === 'PROMISE') return;
        if (kind === 'Timeout') isTimerOfDrain || this.#timers.set(id, resource);
        else if (kind === 'WORKER') this.#threads.set(id, resource);
        else this.#threadPool.made(id, kind, resource, systemClock.monotonic());
      },
      before: (id) => {
        if (this.#timers.has(id) || isFromOutside(executionAsyncResource())) this.#activeAt = systemClock.monotonic();
        this.#threadPool.calledBack(id);
        // A thread is called back once, when it has ended.
        this.#threads.delete(id);
      },
      destroy: (id) => {
        this.#timers.delete(id);
        this.#threads.delete(id);
        this.#threadPool.destroyed(id);
      },
      // Newer versions of Node then spend no time on promises.
      trackPromises: false,
    };
    this.#hook = createHook(hooks).enable();
  }

  /** Call just before a handler is called. When no other runs, what is under way now belongs to none. */
  handlerStarts({ isOnly }: { readonly isOnly: boolean }): void {
    this.#activeAt = systemClock.monotonic();
    if (!isOnly) return;
    this.#timers.clear();
    this.#threads.clear();
    this.#threadPool.clear();
    this.#portsBefore = count(activeResources(), 'MessagePort');
  }

  /**
   * Waits a moment of real time while handlers wait, or may wait, for something real. Answers by how many whole milliseconds
   * virtual time must follow; null when it may jump.
   */
  async moment(): Promise<number | null> {
    const state = this.state;
    const now = systemClock.monotonic();
    this.#unknownSince = state === 'unknown' ? (this.#unknownSince ?? now) : null;
    if (state === 'none') return null;
    const standsStill = this.#unknownSince !== null && now - this.#unknownSince < LONGEST_STANDSTILL_MS;
    const elapsedMs = await realMoment();
    return standsStill ? 0 : elapsedMs;
  }

  get state(): RealWorkState {
    const now = systemClock.monotonic();
    const active = activeResources();
    const isVisible =
      active.some(mayBeWaitedFor) ||
      count(active, 'Immediate') > pendingTurns() ||
      count(active, 'MessagePort') > this.#portsBefore ||
      [...this.#timers.values(), ...this.#threads.values()].some((each) => each.hasRef?.() === true) ||
      this.#threadPool.isUnderWay(now);
    if (isVisible) return 'pending';
    return now - this.#activeAt < GRACE_MS ? 'unknown' : 'none';
  }

  [Symbol.dispose](): void {
    this.#hook.disable();
  }
}

/** Of any drain: two at once would otherwise wait for each other's timers. */
let isTimerOfDrain = false;

/** Waits a moment in real time; answers how many whole milliseconds that took. */
async function realMoment(): Promise<number> {
  const since = systemClock.monotonic();
  await new Promise<void>((resolve) => {
    isTimerOfDrain = true;
    systemClock.after(1, resolve);
    isTimerOfDrain = false;
  });
  return Math.floor(systemClock.monotonic() - since);
}

/**
 * Timers, immediates and ports are told apart above. The others are there all the time: channels to a terminal or a test
 * runner, and servers.
 */
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

function count(active: readonly string[], kind: string): number {
  return active.filter((other) => other === kind).length;
}

function activeResources(): readonly string[] {
  // Runtimes other than Node may not have it.
  return process.getActiveResourcesInfo?.() ?? [];
}

/** Called back by the event loop: not an immediate, a tick or a promise, which the drain makes itself. */
function isFromOutside(resource: object): boolean {
  return resource instanceof MessagePort || 'getAsyncId' in resource;
}
