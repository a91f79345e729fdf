import type { DeadReason, Decision } from '../retry/decide.ts';
import type { OutcomeKind, StoredError } from '../retry/outcome.ts';

/** What every event about a run says. */
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

export interface EventMap {
  enqueued: { readonly id: string; readonly name: string; readonly queue: string; readonly existed: boolean };
  started: RunEvent & { readonly waitedMs: number };
  completed: FinishedEvent;
  /** The run failed or crashed, and the job will run again after `delayMs`. */
  retrying: FinishedEvent & { readonly delayMs: number };
  dead: FinishedEvent & { readonly reason: DeadReason };
  cancelled: FinishedEvent;
  /** Uncounted: snoozed, or handed back by a worker that stops or does not know the job. */
  released: FinishedEvent & { readonly delayMs: number };
  /** A run whose lease ended was taken over; `retrying` or `dead` follows. */
  rescued: RunEvent;
  /** Another worker owns the job by now; what this run did is not recorded. */
  'lease-lost': RunEvent;
  /** An outcome could not be recorded while the lease lasted; the job will run again. */
  'settle-failed': RunEvent & { readonly error: unknown };
}

export type EventName = keyof EventMap;
export type Listener<Name extends EventName> = (event: EventMap[Name]) => void;

/** A listener that throws is the listener's trouble: it is reported, and the queue goes on. */
export class Events {
  readonly #listeners: Map<EventName, Set<Listener<never>>> = new Map();
  readonly #onListenerError: (name: EventName, error: unknown) => void;

  constructor(onListenerError: (name: EventName, error: unknown) => void) {
    this.#onListenerError = onListenerError;
  }

  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Takes a function, so that an event nobody listens to costs nothing. */
  emit<Name extends EventName>(name: Name, event: () => EventMap[Name]): void {
    const listeners = this.#listeners.get(name);
    if (listeners === undefined || listeners.size === 0) return;
    const told = event();
    for (const listener of listeners) {
      try {
        (listener as Listener<Name>)(told);
      } catch (error) {
        this.#onListenerError(name, error);
      }
    }
  }
}
