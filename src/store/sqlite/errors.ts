import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { StoredError } from '../../retry/outcome.ts';
import { LastText } from './last-text.ts';

/**
 * What failed runs threw. During an outage they all throw the same, so each text is stored once per call and referred to
 * by number. It is counted by the ledger's entries; the last error of a job is also that of one of its runs.
 */
export class Errors {
  readonly #newest: StatementSync;
  readonly #insert: StatementSync;
  readonly #find: StatementSync;
  readonly #release: StatementSync;
  readonly #delete: StatementSync;
  readonly #text: LastText = new LastText();
  readonly #added: Map<string, { readonly id: number; uses: number }> = new Map();
  readonly #released: Map<number, number> = new Map();

  constructor(db: DatabaseSync) {
    this.#newest = db.prepare('SELECT coalesce(max(id), 0) AS id FROM errors');
    this.#insert = db.prepare('INSERT INTO errors (id, uses, error) VALUES (?, ?, ?)');
    this.#find = db.prepare('SELECT error FROM errors WHERE id = ?');
    this.#release = db.prepare('UPDATE errors SET uses = uses - ? WHERE id = ?');
    this.#delete = db.prepare('DELETE FROM errors WHERE id = ? AND uses <= 0');
  }

  /** The number under which it will be stored. Write transactions only, as for all that follows. */
  number(error: StoredError): number {
    return this.#entry(error).id;
  }

  /** Another entry of the ledger points at it. */
  use(error: StoredError): void {
    this.#entry(error).uses++;
  }

  /** An entry of the ledger that pointed at it is gone. */
  release(id: number): void {
    this.#released.set(id, (this.#released.get(id) ?? 0) + 1);
  }

  text(id: number): string {
    return (this.#find.get(id) as { error: string }).error;
  }

  /** At the end of a call. */
  write(): void {
    for (const [text, { id, uses }] of this.#added) if (uses > 0) this.#insert.run(id, uses, text);
    for (const [id, uses] of this.#released) {
      this.#release.run(uses, id);
      this.#delete.run(id);
    }
    this.forget();
  }

  forget(): void {
    this.#added.clear();
    this.#released.clear();
  }

  #entry(error: StoredError): { readonly id: number; uses: number } {
    const text = this.#text.of(error);
    const known = this.#added.get(text);
    if (known) return known;
    const added = { id: (this.#newest.get() as { id: number }).id + this.#added.size + 1, uses: 0 };
    this.#added.set(text, added);
    return added;
  }
}
