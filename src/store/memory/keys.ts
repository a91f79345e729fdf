import { isTerminal } from '../../job.ts';
import type { Row } from './row.ts';

/** A key that is held until a time, whatever becomes of the job. */
interface Window {
  readonly id: string;
  readonly until: number;
}

/** Which job holds which key. A key belongs to one job name, and at most one job of that name holds it. */
export class Keys {
  readonly #holders: Map<string, Row> = new Map();
  readonly #windows: Map<string, Window> = new Map();

  /** Jobs that gave their key up when they started, and have not ended. */
  readonly #started: Map<string, Set<Row>> = new Map();

  /** The job that holds the key, and its id also when the job itself is gone. */
  holder(name: string, key: string | null, now: number): { readonly id: string; readonly row?: Row } | undefined {
    if (key === null) return undefined;
    const slot = keySlot(name, key);
    const window = this.#windows.get(slot);
    if (window !== undefined && window.until > now) return { id: window.id };
    const row = this.#holders.get(slot);
    return row && { id: row.id, row };
  }

  started(name: string, key: string | null): readonly Row[] {
    return key === null ? [] : [...(this.#started.get(keySlot(name, key)) ?? [])];
  }

  take(row: Row): void {
    if (row.key !== null) this.#holders.set(keySlot(row.name, row.key), row);
  }

  open({ name, key, id }: Pick<Row, 'name' | 'key' | 'id'>, until: number): void {
    if (key !== null) this.#windows.set(keySlot(name, key), { id, until });
  }

  release(row: Row): void {
    if (row.key === null) return;
    const slot = keySlot(row.name, row.key);
    if (this.#holders.get(slot) === row) this.#holders.delete(slot);
  }

  prune(now: number): void {
    for (const [slot, { until }] of this.#windows) if (until <= now) this.#windows.delete(slot);
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
