import { checkOneOf, unexpected } from '../config.ts';
import type { GateEvent } from '../gate/index.ts';
import type { DeadReason, Decision } from '../retry/decision.ts';
import type { OutcomeKind, StoredError } from '../retry/outcome.ts';
import type { GateRef } from '../store/store.ts';

/** The fields of every event about a run. */
export interface RunEvent {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly run: number;
  readonly attempt: number;
  readonly worker: string;
}

export interface FinishedEvent extends RunEvent {
  readonly outcome: OutcomeKind;
  readonly decision: Decision;
  readonly error: StoredError | null;
  readonly durationMs: number;
}

/** What changed a gate, and the figures of that moment. `rule` is what decided, or `operator`; `who` the operator. */
export interface GateChangedEvent extends Omit<GateEvent, 'epoch'> {
  readonly gate: GateRef;
}

export interface LimitedEvent {
  readonly limit: string;
  /** The names of the jobs of this worker that stand behind it. */
  readonly jobs: readonly string[];
}

export interface EventMap {
  enqueued: { readonly id: string; readonly name: string; readonly queue: string; readonly existed: boolean };
  started: RunEvent & { readonly waitedMs: number };
  completed: FinishedEvent;
  /** The run failed or crashed, and the job will run again after `delayMs`. Its outcome is `deferred` when it does not count. */
  retrying: FinishedEvent & { readonly delayMs: number };
  dead: FinishedEvent & { readonly reason: DeadReason };
  /** When `decision` is not to cancel, the cancel arrived after the decision was made, and still ended the job. */
  cancelled: FinishedEvent;
  /** Uncounted: snoozed, or handed back by a worker that stops or does not know the job. */
  released: FinishedEvent & { readonly delayMs: number };
  /** A run whose lease ended was taken over; `retrying`, `dead` or `cancelled` follows. */
  rescued: RunEvent;
  /** Another worker owns the job; what this run did is not recorded. */
  'lease-lost': RunEvent;
  /** An outcome could not be recorded while the lease lasted; the job will run again. */
  'settle-failed': RunEvent & { readonly error: unknown };
  /** A gate opened, closed or changed otherwise, by a call of this process. */
  gate: GateChangedEvent;
  /** A limit keeps due jobs or permits of one of its keys waiting; at most once per second, limit and worker. */
  limited: LimitedEvent;
}

export type EventName = keyof EventMap;
/** Its return value is ignored, except a promise that rejects: that is reported like a thrown error. */
export type Listener<Name extends EventName> = (event: EventMap[Name]) => unknown;

/** A record, so that no name can be left out. */
const eventNames: Readonly<Record<EventName, true>> = {
  enqueued: true,
  started: true,
  completed: true,
  retrying: true,
  dead: true,
  cancelled: true,
  released: true,
  rescued: true,
  'lease-lost': true,
  'settle-failed': true,
  gate: true,
  limited: true,
};

/** What other queues call these events. By its letters alone, `failed` would be closest to `settle-failed`. */
const usualNames: Readonly<Record<string, string>> = {
  failed: 'retrying or dead',
  failure: 'retrying or dead',
  error: 'retrying or dead',
  retried: 'retrying',
  succeeded: 'completed',
  success: 'completed',
  finished: 'completed or dead',
  active: 'started',
  added: 'enqueued',
  waiting: 'enqueued',
  stalled: 'rescued',
};

/** An error of a listener is reported, and the queue goes on. */
export class Events {
  readonly #listeners: Map<EventName, Set<{ readonly call: Listener<never> }>> = new Map();
  readonly #onListenerError: (name: EventName, error: unknown) => void;

  constructor(onListenerError: (name: EventName, error: unknown) => void) {
    this.#onListenerError = onListenerError;
  }

  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    // A caller without types may give anything, also what cannot be made a text.
    const isUsual = typeof name === 'string' && Object.hasOwn(usualNames, name);
    const meant = isUsual ? usualNames[name as string] : undefined;
    if (meant !== undefined)
      throw unexpected('on', `one of ${Object.keys(eventNames).join(', ')}`, name, `Did you mean ${meant}?`);
    checkOneOf(name, Object.keys(eventNames), 'on');
    if (typeof listener !== 'function') throw unexpected(`on(${JSON.stringify(name)})`, 'a function', listener);
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    // An entry of its own, so that a function that was added twice can be removed once.
    const entry = { call: listener };
    listeners.add(entry);
    return () => void listeners.delete(entry);
  }

  /** Takes a function, so that an event without listeners costs nothing. */
  emit<Name extends EventName>(name: Name, event: () => EventMap[Name]): void {
    const listeners = this.#listeners.get(name);
    if (listeners === undefined || listeners.size === 0) return;
    const value = event();
    // A copy: a listener that removes and adds itself again would otherwise be called for ever.
    for (const entry of [...listeners]) {
      if (listeners.has(entry)) this.#call(name, () => (entry.call as Listener<Name>)(value));
    }
  }

  #call(name: EventName, call: () => unknown): void {
    try {
      const answer = call();
      if (typeof (answer as PromiseLike<unknown> | undefined)?.then !== 'function') return;
      // An unhandled rejection would end the process.
      new Promise((resolve) => resolve(answer)).catch((error: unknown) => this.#onListenerError(name, error));
    } catch (error) {
      this.#onListenerError(name, error);
    }
  }
}
