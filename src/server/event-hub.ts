import type { Clock } from '../clock.ts';
import type { Mulligan } from '../mulligan.ts';
import type { EventMap, EventName, FinishedEvent } from '../observe/events.ts';
import type { Store, Unsubscribe } from '../store/store.ts';
import type { StreamedEvent } from './event-stream.ts';

/*
 * Live changes, for /api/v1/events. What this process does (its API and its workers) is told event by event; of what other
 * processes do, the store tells which jobs have ended. The last KEPT events are kept, so that a reader that was cut off
 * continues after the last one it saw; one that was away for longer is told so (`reset`), and reads the lists again.
 */
const KEPT = 5_000;

const told = [
  'enqueued',
  'started',
  'completed',
  'retrying',
  'dead',
  'cancelled',
  'released',
  'rescued',
  'lease-lost',
  'gate',
  'limited',
] as const satisfies readonly EventName[];
/** Names of all events of the stream. */
export const streamedEvents: readonly string[] = [...told, 'ended', 'operation', 'reset'];

export class EventHub {
  /** Another one with each process: ids of an earlier one mean nothing here. */
  readonly #origin: string;
  readonly #kept: StreamedEvent[] = [];
  #last = 0;
  readonly #listeners: Set<(event: StreamedEvent) => void> = new Set();
  readonly #unsubscribes: Unsubscribe[];

  constructor(mulligan: Mulligan, store: Store, clock: Clock) {
    this.#origin = clock.newId().slice(-12);
    this.#unsubscribes = [
      ...told.map((name) => mulligan.on(name, (event) => this.add(name, toldOf(event)))),
      store.onJobs({ ended: (ids) => this.add('ended', { ids }) }),
    ];
  }

  add(event: string, data: unknown): void {
    const one = { id: `${this.#origin}-${++this.#last}`, event, data };
    this.#kept.push(one);
    // In parts: taking one off the front of a long list each time is slow.
    if (this.#kept.length > 2 * KEPT) this.#kept.splice(0, KEPT);
    for (const listener of [...this.#listeners]) listener(one);
  }

  /** First what came after `lastId`, then what happens from now on. */
  subscribe(lastId: string | null, listener: (event: StreamedEvent) => void): Unsubscribe {
    if (lastId !== null) for (const event of this.#since(lastId)) listener(event);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#listeners.clear();
  }

  #since(lastId: string): readonly StreamedEvent[] {
    const [origin, number = ''] = lastId.split('-');
    const seen = /^\d{1,15}$/.test(number) ? Number(number) : Number.NaN;
    const first = this.#last - this.#kept.length;
    const isKept = origin === this.#origin && seen >= first && seen <= this.#last;
    if (isKept) return this.#kept.slice(seen - first);
    return [{ id: `${this.#origin}-${this.#last}`, event: 'reset', data: {} }];
  }
}

/** Without stacks: they are in the ledger, and would make up most of the stream. */
function toldOf(event: EventMap[(typeof told)[number]]): unknown {
  const { error, ...rest } = event as Partial<FinishedEvent>;
  if (error === undefined || error === null) return event;
  const { stack: _, ...shown } = error;
  return { ...rest, error: shown };
}
