import { isTerminal } from '../../job.ts';
import type { Row } from './row.ts';

/** Which job holds which key. A key belongs to one job name, and at most one job of that name holds it. */
export class Keys {
  readonly #holders: Map<string, Row> = new Map();

  /** Jobs that gave their key up when they started, and have not ended. */
  readonly #started: Map<string, Set<Row>> = new Map();

  holder(name: string, key: string | null): Row | undefined {
    return key === null ? undefined : this.#holders.get(keySlot(name, key));
  }

  started(name: string, key: string | null): readonly Row[] {
    return key === null ? [] : [...(this.#started.get(keySlot(name, key)) ?? [])];
  }

  take(row: Row): void {
    if (row.key !== null) this.#holders.set(keySlot(row.name, row.key), row);
  }

  release(row: Row): void {
    if (row.key !== null && this.holder(row.name, row.key) === row) this.#holders.delete(keySlot(row.name, row.key));
  }

  /** A job lets go of its key when it starts or ends, as its `keyLife` says; one that ends unstarted also lets go. */
  follow(row: Row): void {
    const started = row.state === 'running' && row.keyLife === 'started';
    const ended = isTerminal(row.state) && row.keyLife !== 'pruned';
    if (started || ended) this.release(row);
    if (row.key !== null && row.keyLife === 'started') this.#follow(keySlot(row.name, row.key), row);
  }

  #follow(slot: string, row: Row): void {
    const rows = this.#started.get(slot) ?? new Set();
    if (isTerminal(row.state)) rows.delete(row);
    else if (row.runs > 0 || row.state === 'running') rows.add(row);
    if (rows.size === 0) this.#started.delete(slot);
    else this.#started.set(slot, rows);
  }
}

/** Names and keys are the user's own text: joined by any separator, two different pairs could meet. */
export function keySlot(name: string, key: string): string {
  return JSON.stringify([name, key]);
}
