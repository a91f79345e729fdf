import { plain, texts } from './connection/arrays.ts';
import type { Database } from './connection/database.ts';

/** The ids of workers, which are stored once and pointed at by number. A number never changes its meaning. */
export class Workers {
  readonly #db: Database;
  readonly #byName: Map<string, number> = new Map();
  readonly #byId: Map<number, string> = new Map();

  constructor(db: Database) {
    this.#db = db;
  }

  /** The number of this worker, which is new when it claims for the first time. */
  async intern(name: string): Promise<number> {
    await this.#load([name], 'SELECT g.name, @.worker_of(g.name) FROM unnest($1::text[]) AS g (name)');
    return this.#byName.get(name) as number;
  }

  /** The numbers of these workers; 0, which no worker has, for one that never claimed anything. */
  async find(names: Iterable<string>): Promise<(name: string) => number> {
    await this.#load(names, 'SELECT name, id FROM @.workers WHERE name = ANY ($1::text[])');
    return (name) => this.#byName.get(name) ?? 0;
  }

  /** The names behind these numbers. */
  async names(ids: Iterable<number>): Promise<(id: number) => string> {
    const missing = [...new Set(ids)].filter((id) => !this.#byId.has(id));
    if (missing.length > 0) {
      const sql = 'SELECT id, name FROM @.workers WHERE id = ANY ($1::int[])';
      for (const [id, name] of await this.#db.query<[number, string]>(sql, [plain(missing)])) this.#keep(id, name);
    }
    return (id) => this.#byId.get(id) as string;
  }

  async #load(names: Iterable<string>, sql: string): Promise<void> {
    const missing = [...new Set(names)].filter((name) => !this.#byName.has(name));
    if (missing.length === 0) return;
    for (const [name, id] of await this.#db.query<[string, number]>(sql, [texts(missing)])) this.#keep(id, name);
  }

  #keep(id: number, name: string): void {
    this.#byName.set(name, id);
    this.#byId.set(id, name);
  }
}
