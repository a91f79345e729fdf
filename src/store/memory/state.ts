import { isTerminal, type JobState, stateAt, transitions } from '../../job.ts';
import type { Fence, RetentionRule, Schedule } from '../store.ts';
import { ErrorGroups } from './error-groups.ts';
import { ErrorHistory } from './error-history.ts';
import { Gates } from './gates.ts';
import { History } from './history.ts';
import { Keys } from './keys.ts';
import { Limits } from './limits.ts';
import { Partitions } from './partitions.ts';
import type { Lease, OperationRow, Row } from './row.ts';
import { Running } from './running.ts';
import { TotalsBook } from './totals.ts';
import { Wake } from './wake.ts';
import { Workers } from './workers.ts';

type Ended = 'completed' | 'dead' | 'cancelled';

/** The fields a move may change; whatever a row is filed under changes here and nowhere else. */
type Changes = Partial<Omit<Row, 'state' | 'accepted' | 'id' | 'name' | 'key' | 'keyLife' | 'priority'>>;

/** All rows, and the indexes that are kept with every move of a row. */
export class MemoryState {
  /** In the order they were accepted. */
  readonly rows: Map<string, Row> = new Map();
  readonly partitions: Partitions = new Partitions();
  readonly gates: Gates = new Gates(this.partitions);
  readonly running: Running = new Running();
  readonly limits: Limits = new Limits();
  /** In the order they ended. */
  readonly ended: Record<Ended, Set<Row>> = { completed: new Set(), dead: new Set(), cancelled: new Set() };
  readonly keys: Keys = new Keys();
  readonly totals: TotalsBook = new TotalsBook();
  readonly errorGroups: ErrorGroups = new ErrorGroups();
  readonly history: History = new History();
  readonly errorHistory: ErrorHistory = new ErrorHistory();
  readonly wake: Wake = new Wake();
  /** In the order they began. */
  readonly operations: Map<string, OperationRow> = new Map();
  /** What runs logged, by job and run; only of jobs that have logged something. */
  readonly logs: Map<string, Map<number, string>> = new Map();
  readonly schedules: Map<string, Schedule> = new Map();
  retention: readonly RetentionRule[] = [];
  readonly workers: Workers = new Workers();
  #accepted = 0;

  /** The row whose newest run the fence names, while that run still holds it; its lease may have expired. */
  held(fence: Fence): (Row & { lease: Lease }) | null {
    const row = this.rows.get(fence.id);
    if (!row?.lease || row.runs !== fence.run || row.lease.worker !== fence.worker) return null;
    return row as Row & { lease: Lease };
  }

  accept(row: Omit<Row, 'accepted'>, windowMs: number | undefined): void {
    const accepted: Row = { ...row, accepted: this.#accepted++ };
    this.rows.set(row.id, accepted);
    if (windowMs === undefined) this.keys.take(accepted);
    else this.keys.open(accepted, row.enqueuedAt + windowMs);
    this.#file(accepted);
  }

  move(row: Row, to: JobState, now: number, changes: Changes): void {
    const from = stateAt(row.state, row.dueAt, now);
    const allowed: readonly JobState[] = transitions[from];
    if (!allowed.includes(to)) throw new Error(`Job ${row.id} cannot go from ${from} to ${to}: this is a bug.`);
    this.#unfile(row);
    Object.assign(row, changes, { state: to });
    this.#file(row);
    this.keys.follow(row);
  }

  /** A waiting job goes back among those that every worker may take. */
  leaveAside(row: Row): void {
    this.#unfile(row);
    row.aside = null;
    this.#file(row);
  }

  /** A waiting job becomes another one, which waits as well. */
  replace(row: Row, changes: Partial<Row>): void {
    this.#unfile(row);
    Object.assign(row, changes);
    this.#file(row);
  }

  /** A waiting job falls due at another time. */
  reschedule(row: Row, dueAt: number, availableAt: number): void {
    this.#unfile(row);
    Object.assign(row, { dueAt, availableAt });
    this.#file(row);
  }

  remove(row: Row): void {
    this.#unfile(row);
    this.keys.release(row);
    this.rows.delete(row.id);
    this.logs.delete(row.id);
  }

  #file(row: Row): void {
    if (!isTerminal(row.state)) this.limits.file(row);
    if (row.state === 'running') this.running.add(row);
    else if (isTerminal(row.state)) this.ended[row.state as Ended].add(row);
    else this.partitions.add(row);
  }

  #unfile(row: Row): void {
    if (!isTerminal(row.state)) this.limits.unfile(row);
    if (row.state === 'running') this.running.remove(row);
    else if (isTerminal(row.state)) this.ended[row.state as Ended].delete(row);
    else this.partitions.remove(row);
  }
}
