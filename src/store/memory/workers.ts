import { FORGOTTEN_AFTER_MS, type RegisteredWorker, registeredWorker, type WorkerDescription } from '../workers.ts';

interface Row {
  readonly description: string;
  readonly startedAt: number;
  readonly seenAt: number;
}

/** Workers by their ids, in the order in which they started. */
export class Workers {
  readonly #rows: Map<string, Row> = new Map();

  register(id: string, worker: WorkerDescription | null, now: number): void {
    if (worker === null) this.#rows.delete(id);
    else {
      const startedAt = this.#rows.get(id)?.startedAt ?? now;
      this.#rows.set(id, { description: JSON.stringify(worker), startedAt, seenAt: now });
    }
    for (const [other, { seenAt }] of this.#rows) {
      if (seenAt <= now - FORGOTTEN_AFTER_MS) this.#rows.delete(other);
    }
  }

  list(now: number): RegisteredWorker[] {
    return [...this.#rows].map(([id, { description, startedAt, seenAt }]) =>
      registeredWorker(id, description, startedAt, seenAt, now),
    );
  }
}
