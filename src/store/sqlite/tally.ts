import type { StatementSync } from 'node:sqlite';

export const ADD_TALLY = `
  INSERT INTO tallies (queue, name, what, amount) VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET amount = amount + excluded.amount`;

/** Names per queue in one key: more than there will ever be of either. */
const STRIDE = 2 ** 26;

/** Counts of one transaction, added up in memory and written once per queue, name and count. */
export class Tally {
  /** By what is counted, then by queue and name. */
  readonly #amounts: Map<string, Map<number, number>> = new Map();

  add(queue: number, name: number, what: string, amount: number): void {
    let amounts = this.#amounts.get(what);
    if (!amounts) {
      amounts = new Map();
      this.#amounts.set(what, amounts);
    }
    const key = queue * STRIDE + name;
    amounts.set(key, (amounts.get(key) ?? 0) + amount);
  }

  write(statement: StatementSync): void {
    for (const [what, amounts] of this.#amounts) {
      for (const [key, amount] of amounts) statement.run(Math.floor(key / STRIDE), key % STRIDE, what, amount);
    }
    this.#amounts.clear();
  }

  clear(): void {
    this.#amounts.clear();
  }
}
