import type { DatabaseSync, StatementSync } from 'node:sqlite';

/**
 * Texts stored once and pointed at by number. Both tables only grow, so what was read once stays true; another
 * process may have added entries, so a miss goes to the database.
 */
export class Words {
  readonly #byText: Map<string, number> = new Map();
  readonly #byId: Map<number, string> = new Map();
  readonly #find: StatementSync;
  readonly #read: StatementSync;
  readonly #add: StatementSync;

  constructor(db: DatabaseSync) {
    this.#find = db.prepare('SELECT id FROM words WHERE text = ?');
    this.#read = db.prepare('SELECT text FROM words WHERE id = ?');
    this.#add = db.prepare('INSERT INTO words (text) VALUES (?) RETURNING id');
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

  /** After a rollback, numbers handed out in that transaction may come to mean something else. */
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

export interface Stream {
  readonly id: number;
  readonly queue: string;
  readonly resource: string | null;
}

/** The streams of a file: few, and read again whenever another process has added one. */
export class Streams {
  readonly #byId: Map<number, Stream> = new Map();
  readonly #byQueue: Map<string, Stream[]> = new Map();
  #newest = 0;
  readonly #newestStored: StatementSync;
  readonly #since: StatementSync;
  readonly #add: StatementSync;

  constructor(db: DatabaseSync) {
    this.#newestStored = db.prepare('SELECT max(id) AS id FROM streams');
    this.#since = db.prepare('SELECT id, queue, resource FROM streams WHERE id > ? ORDER BY id');
    this.#add = db.prepare('INSERT INTO streams (queue, resource) VALUES (?, ?)');
  }

  refresh(): void {
    const newest = (this.#newestStored.get() as { id: number | null }).id ?? 0;
    if (newest === this.#newest) return;
    for (const row of this.#since.all(this.#newest) as unknown as { id: number; queue: string; resource: string }[]) {
      const stream = { id: row.id, queue: row.queue, resource: row.resource || null };
      this.#byId.set(stream.id, stream);
      const siblings = this.#byQueue.get(stream.queue);
      if (siblings) siblings.push(stream);
      else this.#byQueue.set(stream.queue, [stream]);
    }
    this.#newest = newest;
  }

  forget(): void {
    this.#byId.clear();
    this.#byQueue.clear();
    this.#newest = 0;
  }

  queues(): string[] {
    return [...this.#byQueue.keys()];
  }

  ofQueue(queue: string): readonly Stream[] {
    return this.#byQueue.get(queue) ?? [];
  }

  get(id: number): Stream {
    const known = this.#byId.get(id);
    if (known) return known;
    this.refresh();
    return this.#byId.get(id) as Stream;
  }

  /** Write transactions only. */
  intern(queue: string, resource: string | null): number {
    const find = (): Stream | undefined => this.ofQueue(queue).find((stream) => stream.resource === resource);
    const known = find();
    if (known) return known.id;
    this.refresh();
    const added = find();
    if (added) return added.id;
    this.#add.run(queue, resource ?? '');
    this.refresh();
    return (find() as Stream).id;
  }
}
