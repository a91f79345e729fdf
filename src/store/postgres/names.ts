import type { Lane } from '../../job.ts';
import { lanes } from '../../job.ts';
import type { RetryPolicy } from '../../retry/policy.ts';
import { LANE } from '../codes.ts';
import { parseFrozen } from '../json.ts';
import type { NewJob } from '../store.ts';
import { plain, texts } from './connection/arrays.ts';
import type { Database } from './connection/database.ts';

/*
 * What is stored once and pointed at by number. Nothing of it is ever taken back, so what was read once stays true.
 * New entries are stored by themselves, before and outside the transaction that will point at them.
 */

/** The ids of workers. */
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

  /** The numbers of these workers; 0, which nobody has, for one that never claimed anything. */
  async find(names: Iterable<string>): Promise<(name: string) => number> {
    await this.#load(names, 'SELECT name, id FROM @.workers WHERE name = ANY ($1::text[])');
    return (name) => this.#byName.get(name) ?? 0;
  }

  async #load(names: Iterable<string>, sql: string): Promise<void> {
    const missing = [...new Set(names)].filter((name) => !this.#byName.has(name));
    if (missing.length === 0) return;
    for (const [name, id] of await this.#db.query<[string, number]>(sql, [texts(missing)])) this.#keep(id, name);
  }

  /** Makes sure that `name` knows these numbers. */
  async know(ids: Iterable<number>): Promise<void> {
    const missing = [...new Set(ids)].filter((id) => !this.#byId.has(id));
    if (missing.length === 0) return;
    const sql = 'SELECT id, name FROM @.workers WHERE id = ANY ($1::int[])';
    for (const [id, name] of await this.#db.query<[number, string]>(sql, [plain(missing)])) this.#keep(id, name);
  }

  name(id: number): string {
    return this.#byId.get(id) as string;
  }

  #keep(id: number, name: string): void {
    this.#byName.set(name, id);
    this.#byId.set(id, name);
  }
}

/** Where jobs wait: those of one queue, resource, lane and priority. */
export interface Line {
  readonly id: number;
  readonly queue: string;
  readonly resource: string | null;
  readonly lane: Lane;
  readonly priority: number;
}

export type LineName = Omit<Line, 'id'>;

/** The lines there are: few, and numbered so that whoever knows the newest knows all before it. */
export class Lines {
  readonly #db: Database;
  readonly #byId: Map<number, Line> = new Map();
  readonly #byName: Map<string, Line> = new Map();
  #newest = 0;

  constructor(db: Database) {
    this.#db = db;
  }

  get newest(): number {
    return this.#newest;
  }

  /** Reads those that are new. */
  async refresh(): Promise<void> {
    const rows = await this.#db.query<[number, string, string, number, number]>(
      'SELECT id, queue, resource, lane, priority FROM @.lines WHERE id > $1 ORDER BY id',
      [this.#newest],
    );
    for (const [id, queue, resource, lane, priority] of rows) {
      this.#keep({ id, queue, resource: resource || null, lane: lanes[lane] as Lane, priority });
    }
  }

  get(id: number): Line {
    return this.#byId.get(id) as Line;
  }

  /** Makes sure that `get` knows these numbers. */
  async know(ids: Iterable<number>): Promise<void> {
    for (const id of ids) {
      if (this.#byId.has(id)) continue;
      await this.refresh();
      return;
    }
  }

  /** In the order in which a claim reads them. */
  ofQueues(queues: readonly string[]): Line[] {
    const wanted = new Map(queues.map((queue, index) => [queue, index]));
    const orderOf = (line: Line): number => wanted.get(line.queue) as number;
    return [...this.#byId.values()]
      .filter((line) => wanted.has(line.queue))
      .sort((a, b) => orderOf(a) - orderOf(b) || LANE[a.lane] - LANE[b.lane] || a.priority - b.priority || a.id - b.id);
  }

  /** The numbers of these lines, adding those that are new. */
  async intern(wanted: Iterable<LineName>): Promise<(line: LineName) => number> {
    const missing = new Map<string, LineName>();
    for (const line of wanted) {
      const name = lineKey(line);
      if (!this.#byName.has(name)) missing.set(name, line);
    }
    for (const { queue, resource, lane, priority } of missing.values()) {
      await this.#db.query('SELECT @.line_of($1, $2, $3::smallint, $4::smallint)', [
        queue,
        resource ?? '',
        LANE[lane],
        priority,
      ]);
    }
    if (missing.size > 0) await this.refresh();
    return (line) => (this.#byName.get(lineKey(line)) as Line).id;
  }

  #keep(line: Line): void {
    this.#byId.set(line.id, line);
    this.#byName.set(lineKey(line), line);
    this.#newest = Math.max(this.#newest, line.id);
  }
}

function lineKey({ queue, resource, lane, priority }: LineName): string {
  return `${queue.length} ${queue}${resource ?? ''} ${lane} ${priority}`;
}

/** What the jobs of one definition share. */
export interface Kind {
  /** The line they are enqueued in. */
  readonly line: Line;
  readonly name: string;
  readonly retryQueue: string | null;
  readonly policy: RetryPolicy;
}

/** What an enqueue says of a kind. There is one such object per kind. */
export interface KnownKind {
  readonly id: number;
  readonly line: number;
  readonly name: string;
}

/** More than there are definitions; jobs with policies of their own may be any number. */
const MOST_KINDS = 10_000;

export class Kinds {
  readonly #db: Database;
  readonly #lines: Lines;
  readonly #byId: Map<number, Kind> = new Map();
  /** By policy, since jobs of one definition share theirs as an object; then by all else. */
  readonly #known: WeakMap<RetryPolicy, Map<string, KnownKind>> = new WeakMap();
  /** By policy as text, for those that do not. */
  readonly #byText: Map<string, KnownKind> = new Map();

  constructor(db: Database, lines: Lines) {
    this.#db = db;
    this.#lines = lines;
  }

  /** The kinds of these jobs, adding those that are new. */
  async intern(jobs: readonly NewJob[]): Promise<KnownKind[]> {
    const kinds: KnownKind[] = [];
    // Usually each is of the same kind as the one before.
    let last: NewJob | null = null;
    for (const job of jobs) {
      const known = last !== null && isAlike(job, last) ? kinds.at(-1) : this.#known.get(job.policy)?.get(kindKey(job));
      kinds.push(known ?? (await this.#add(job)));
      last = job;
    }
    return kinds;
  }

  /** Makes sure that `get` knows these numbers. */
  async know(ids: Iterable<number>): Promise<void> {
    const missing = [...new Set(ids)].filter((id) => !this.#byId.has(id));
    if (missing.length === 0) return;
    const rows = await this.#db.query<[number, number, string, string | null, string]>(
      'SELECT id, line, name, retry_queue, policy FROM @.kinds WHERE id = ANY ($1::int[])',
      [plain(missing)],
    );
    await this.#lines.know(rows.map(([, line]) => line));
    for (const [id, line, name, retryQueue, policy] of rows) {
      this.#byId.set(id, { line: this.#lines.get(line), name, retryQueue, policy: parseFrozen<RetryPolicy>(policy) });
    }
  }

  get(id: number): Kind {
    return this.#byId.get(id) as Kind;
  }

  async #add(job: NewJob): Promise<KnownKind> {
    const { policy } = job;
    const key = kindKey(job);
    const text = JSON.stringify(policy);
    const kind = this.#byText.get(key + text) ?? (await this.#store(job, text));
    if (this.#byText.size >= MOST_KINDS) this.#byText.clear();
    this.#byText.set(key + text, kind);
    const alike = this.#known.get(policy) ?? new Map<string, KnownKind>();
    this.#known.set(policy, alike.set(key, kind));
    return kind;
  }

  async #store({ queue, resource, priority, name, retryQueue }: NewJob, policy: string): Promise<KnownKind> {
    const waitsIn: LineName = { queue, resource, lane: 'fresh', priority };
    const line = (await this.#lines.intern([waitsIn]))(waitsIn);
    const values = [line, name, retryQueue, policy];
    const [row] = await this.#db.query<[id: number]>('SELECT @.kind_of($1, $2, $3, $4)', values);
    return { id: (row as [number])[0], line, name };
  }
}

function isAlike(a: NewJob, b: NewJob): boolean {
  return (
    a.policy === b.policy &&
    a.name === b.name &&
    a.queue === b.queue &&
    a.priority === b.priority &&
    a.resource === b.resource &&
    a.retryQueue === b.retryQueue
  );
}

function kindKey({ queue, resource, priority, name, retryQueue }: NewJob): string {
  return JSON.stringify([queue, resource, priority, name, retryQueue]);
}
