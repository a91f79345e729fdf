import type { Lane } from '../../job.ts';
import type { RetryPolicy } from '../../retry/policy.ts';
import { laneCodes } from '../codes.ts';
import { plain, texts } from './arrays.ts';
import type { Database } from './database.ts';

/**
 * Texts stored once and pointed at by number. They are never taken back, so what was read once stays true. New ones
 * are stored by themselves, before and outside the transaction that will point at them.
 */
export class Words {
  readonly #db: Database;
  readonly #byText: Map<string, number> = new Map();
  readonly #byId: Map<number, string> = new Map();
  readonly #policies: Map<number, RetryPolicy> = new Map();
  readonly #policyIds: WeakMap<RetryPolicy, number> = new WeakMap();

  constructor(db: Database) {
    this.#db = db;
  }

  /** The numbers of these texts, adding those that are new. */
  async intern(wanted: Iterable<string>): Promise<(text: string) => number> {
    await this.#load(wanted, 'SELECT g.text, @.word_of(g.text) FROM unnest($1::text[]) AS g (text)');
    return (text) => this.#byText.get(text) as number;
  }

  /** The numbers of these texts; 0, which nothing has, for one that was never stored. */
  async find(wanted: Iterable<string>): Promise<(text: string) => number> {
    const find = `SELECT w.text, w.id FROM unnest($1::text[]) AS g (text) JOIN @.words w ON md5(w.text) = md5(g.text)`;
    await this.#load(wanted, find);
    return (text) => this.#byText.get(text) ?? 0;
  }

  async #load(wanted: Iterable<string>, sql: string): Promise<void> {
    const missing = [...new Set(wanted)].filter((text) => !this.#byText.has(text));
    if (missing.length === 0) return;
    for (const [text, id] of await this.#db.query<[string, number]>(sql, [texts(missing)])) this.#keep(id, text);
  }

  /** Policies by object: jobs of one definition share theirs. */
  async internPolicies(policies: Iterable<RetryPolicy>): Promise<(policy: RetryPolicy) => number> {
    const missing = new Map<RetryPolicy, string>();
    for (const policy of policies) {
      if (!this.#policyIds.has(policy)) missing.set(policy, JSON.stringify(policy));
    }
    if (missing.size > 0) {
      const idOf = await this.intern(missing.values());
      for (const [policy, text] of missing) this.#policyIds.set(policy, idOf(text));
    }
    return (policy) => this.#policyIds.get(policy) as number;
  }

  /** Makes sure that `text` and `policy` know these numbers. */
  async know(ids: Iterable<number>): Promise<void> {
    const missing = [...new Set(ids)].filter((id) => !this.#byId.has(id));
    if (missing.length === 0) return;
    const rows = await this.#db.query<[number, string]>('SELECT id, text FROM @.words WHERE id = ANY ($1::int[])', [
      plain(missing),
    ]);
    for (const [id, text] of rows) this.#keep(id, text);
  }

  text(id: number): string {
    return this.#byId.get(id) as string;
  }

  policy(id: number): RetryPolicy {
    let policy = this.#policies.get(id);
    if (!policy) {
      policy = JSON.parse(this.text(id), (_, value: unknown) => Object.freeze(value)) as RetryPolicy;
      this.#policies.set(id, policy);
    }
    return policy;
  }

  #keep(id: number, text: string): void {
    this.#byText.set(text, id);
    this.#byId.set(id, text);
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

/** The lines there are: few, never taken back, and numbered so that whoever knows the newest knows all before it. */
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
      this.#keep({ id, queue, resource: resource || null, lane: laneCodes[lane] as Lane, priority });
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

  ofQueues(queues: readonly string[]): Line[] {
    const wanted = new Map(queues.map((queue, index) => [queue, index]));
    const orderOf = (line: Line): number => wanted.get(line.queue) as number;
    return [...this.#byId.values()]
      .filter((line) => wanted.has(line.queue))
      .sort(
        (a, b) =>
          orderOf(a) - orderOf(b) ||
          laneCodes.indexOf(a.lane) - laneCodes.indexOf(b.lane) ||
          a.priority - b.priority ||
          a.id - b.id,
      );
  }

  queues(): string[] {
    return [...new Set([...this.#byId.values()].map((line) => line.queue))];
  }

  /** The numbers of these lines, adding those that are new. */
  async intern(wanted: Iterable<LineName>): Promise<(line: LineName) => number> {
    const missing = new Map<string, LineName>();
    for (const line of wanted) {
      const name = nameOf(line);
      if (!this.#byName.has(name)) missing.set(name, line);
    }
    for (const { queue, resource, lane, priority } of missing.values()) {
      await this.#db.query('SELECT @.line_of($1, $2, $3::smallint, $4::smallint)', [
        queue,
        resource ?? '',
        laneCodes.indexOf(lane),
        priority,
      ]);
    }
    if (missing.size > 0) await this.refresh();
    return (line) => (this.#byName.get(nameOf(line)) as Line).id;
  }

  #keep(line: Line): void {
    this.#byId.set(line.id, line);
    this.#byName.set(nameOf(line), line);
    this.#newest = Math.max(this.#newest, line.id);
  }
}

function nameOf({ queue, resource, lane, priority }: LineName): string {
  return `${queue.length} ${queue}${resource ?? ''} ${lane} ${priority}`;
}
