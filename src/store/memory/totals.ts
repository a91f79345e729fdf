import type { JobState } from '../../job.ts';
import type { StatsRow } from '../store.ts';
import { emptyTotals, type MutableTotals } from '../totals.ts';
import type { Row } from './row.ts';

/** What happened to the jobs of one name in one home queue, since the store was made. */
export interface Tally {
  readonly queue: string;
  readonly name: string;
  readonly totals: MutableTotals;
}

export class TotalsBook {
  readonly #tallies: Map<string, Tally> = new Map();

  of(row: Pick<Row, 'homeQueue' | 'name'>): Tally {
    const slot = JSON.stringify([row.homeQueue, row.name]);
    const tally = this.#tallies.get(slot) ?? { queue: row.homeQueue, name: row.name, totals: emptyTotals() };
    this.#tallies.set(slot, tally);
    return tally;
  }

  /** Copies, joined with the number of jobs in each state. */
  rows(statesOf: (tally: Tally) => Record<JobState, number>): StatsRow[] {
    return [...this.#tallies.values()].map((tally) => ({ ...structuredClone(tally), states: statesOf(tally) }));
  }
}
