import { AT, type ClaimedRow, FINGERPRINT, ID, LIMITS } from './claimed-row.ts';
import type { PartitionKey } from './partitions.ts';

/** What a settlement must know of a job; `attempt` counts the run that is being settled. */
export interface RunningRow extends PartitionKey {
  readonly seq: number;
  readonly attempt: number;
  readonly homeQueue: number;
  readonly retryQueue: number | null;
  readonly fingerprint: string | null;
  readonly limits: string | null;
}

/** More than any worker runs at once; beyond it, settling looks the job up. */
const MOST = 50_000;

/** What this connection claimed and has not settled. It saves settling a read, and is a hint: the fence is in the write. */
export class RunningRows {
  readonly #rows: Map<string, RunningRow & { readonly run: number }> = new Map();

  add(row: ClaimedRow): void {
    if (this.#rows.size >= MOST) this.#rows.clear();
    this.#rows.set(row[ID] as string, {
      seq: row[AT.seq] as number,
      run: row[AT.runs] as number,
      attempt: row[AT.attempts] as number,
      name: row[AT.name] as number,
      homeQueue: row[AT.home_queue] as number,
      retryQueue: row[AT.retry_queue] as number | null,
      queue: row[AT.queue] as number,
      lane: row[AT.lane] as number,
      priority: row[AT.priority] as number,
      resource: row[AT.resource] as number,
      fingerprint: row[FINGERPRINT] as string | null,
      limits: row[LIMITS] as string | null,
    });
  }

  take(id: string, run: number): RunningRow | null {
    const row = this.#rows.get(id);
    if (row?.run !== run) return null;
    this.#rows.delete(id);
    return row;
  }

  clear(): void {
    this.#rows.clear();
  }
}
