import type { Unsubscribe } from '../store.ts';

/** Tells listeners that work may have become claimable: after the write, and once however many writes one tick makes. */
export class Wake {
  readonly #listeners: Set<{ readonly call: () => void }> = new Set();
  #coming = false;

  listen(listener: () => void): Unsubscribe {
    const entry = { call: listener };
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  hint(): void {
    if (this.#coming) return;
    this.#coming = true;
    queueMicrotask(() => {
      this.#coming = false;
      // Each on its own microtask: a listener that throws neither stops the others nor reaches the writer.
      for (const entry of this.#listeners) queueMicrotask(() => this.#listeners.has(entry) && entry.call());
    });
  }

  stop(): void {
    this.#listeners.clear();
  }
}
