import type { DatabaseSync, StatementSync } from 'node:sqlite';

/**
 * Texts that are stored once and referred to by number. The table only grows, so what was read once stays true; another
 * process may have added entries, so a miss is looked up in the database.
 */
export class InternedStrings {
  readonly #byText: Map<string, number> = new Map();
  readonly #byId: Map<number, string> = new Map();
  readonly #find: StatementSync;
  readonly #read: StatementSync;
  readonly #add: StatementSync;

  constructor(db: DatabaseSync) {
    this.#find = db.prepare('SELECT id FROM strings WHERE text = ?');
    this.#read = db.prepare('SELECT text FROM strings WHERE id = ?');
    this.#add = db.prepare('INSERT INTO strings (text) VALUES (?) RETURNING id');
  }

  /** The number of a text, or null when nothing stored uses it. */
  find(text: string): number | null {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const row = this.#find.get(text) as { id: number } | undefined;
    return row ? this.#keep(row.id, text) : null;
  }

  /** The number of a text, adding it when it is new. Write transactions only. */
  intern(text: string): number {
    return this.find(text) ?? this.#keep((this.#add.get(text) as { id: number }).id, text);
  }

  text(id: number): string {
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    const row = this.#read.get(id) as { text: string };
    this.#keep(id, row.text);
    return row.text;
  }

  /** After a rollback, or when the tables were replaced, a number may stand for another text. */
  forget(): void {
    this.#byText.clear();
    this.#byId.clear();
  }

  #keep(id: number, text: string): number {
    this.#byText.set(text, id);
    this.#byId.set(id, text);
    return id;
  }
}
