import type { DatabaseSync, StatementSync } from 'node:sqlite';

interface Found {
  readonly id: number;
  readonly is_temporary: number | null;
}

/**
 * Texts that are stored once and referred to by number. Another process may have added entries, so a miss is looked up in
 * the database. What was read once stays true, except of temporary texts: pruning deletes those that nothing refers to
 * (forget-names.ts), so they are looked up each time. A number is never given to a second text.
 */
export class InternedStrings {
  readonly #byText: Map<string, number> = new Map();
  readonly #byId: Map<number, string> = new Map();
  readonly #find: StatementSync;
  readonly #read: StatementSync;
  readonly #add: StatementSync;
  readonly #keepForGood: StatementSync;

  constructor(db: DatabaseSync) {
    this.#find = db.prepare('SELECT id, is_temporary FROM strings WHERE text = ?');
    this.#read = db.prepare('SELECT text, is_temporary FROM strings WHERE id = ?');
    this.#add = db.prepare('INSERT INTO strings (text, is_temporary) VALUES (?, ?) RETURNING id');
    this.#keepForGood = db.prepare('UPDATE strings SET is_temporary = NULL WHERE id = ?');
  }

  /** The number of a text, or null when nothing stored uses it. */
  find(text: string): number | null {
    return this.#byText.get(text) ?? this.#lookUp(text)?.id ?? null;
  }

  /** The number of a text, adding it when it is new. Write transactions only. */
  intern(text: string): number {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const found = this.#lookUp(text);
    if (found === null) return this.#keep((this.#add.get(text, null) as { id: number }).id, text);
    if (found.is_temporary) this.#keepForGood.run(found.id);
    return this.#keep(found.id, text);
  }

  /** The same for the name of a resource. Users choose its keys, so one with a key is temporary. */
  internResource(name: string): number {
    if (!name.includes('/')) return this.intern(name);
    return this.find(name) ?? (this.#add.get(name, 1) as { id: number }).id;
  }

  text(id: number): string {
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    const { text, is_temporary } = this.#read.get(id) as { text: string; is_temporary: number | null };
    if (!is_temporary) this.#keep(id, text);
    return text;
  }

  /** After a rollback, or when the tables were replaced, a number may stand for another text. */
  forget(): void {
    this.#byText.clear();
    this.#byId.clear();
  }

  #lookUp(text: string): Found | null {
    const found = this.#find.get(text) as Found | undefined;
    if (found === undefined) return null;
    if (!found.is_temporary) this.#keep(found.id, text);
    return found;
  }

  #keep(id: number, text: string): number {
    this.#byText.set(text, id);
    this.#byId.set(id, text);
    return id;
  }
}
