import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** Counts of one transaction, added up in memory and written once per queue, name and count. */
export class Tally {
  readonly #amounts: Map<string, { stream: number; name: number; what: string; amount: number }> = new Map();

  add(stream: number, name: number, what: string, amount: number): void {
    const key = `${stream} ${name} ${what}`;
    const entry = this.#amounts.get(key);
    if (entry) entry.amount += amount;
    else this.#amounts.set(key, { stream, name, what, amount });
  }

  write(statement: StatementSync): void {
    for (const { stream, name, what, amount } of this.#amounts.values()) {
      if (amount !== 0) statement.run(stream, name, what, amount);
    }
  }
}

export function prepareTally(db: DatabaseSync): StatementSync {
  return db.prepare(`
    INSERT INTO tallies (stream, name, what, amount) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET amount = amount + excluded.amount
  `);
}
