import type { Clock } from '../../clock.ts';
import { isAway, isConflict, toStoreError } from './failure.ts';
import type { Hosts } from './hosts.ts';

/** As much of a `pg` client or pool as is needed; any client that has it can carry our statements. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** How often a transaction that stood in another's way is tried again, and how long to step back at first. */
const MOST_TRIES = 6;
const FIRST_PAUSE_MS = 5;

/** Numbers, all of which fit: int8 included. */
const NUMBERS = new Set([20, 21, 23, 1700]);
const types = {
  getTypeParser:
    (oid: number): ((value: string) => unknown) =>
    (value) => {
      if (NUMBERS.has(oid)) return Number(value);
      return oid === 16 ? value === 't' : value;
    },
};

/** One statement as the driver takes it: rows as arrays, which are quicker to make than objects. */
export interface Statement {
  readonly text: string;
  readonly values: unknown[];
  readonly rowMode: 'array';
  readonly types: typeof types;
}

/** Statements on the schema of one queue. In them `@.` stands for the schema. */
export class Database {
  readonly schema: string;
  readonly clock: Clock;
  readonly #hosts: Hosts;
  readonly #texts: Map<string, string> = new Map();

  constructor(hosts: Hosts, schema: string, clock: Clock) {
    this.#hosts = hosts;
    this.schema = schema;
    this.clock = clock;
  }

  get hosts(): Hosts {
    return this.#hosts;
  }

  statement(sql: string, values: unknown[]): Statement {
    return { text: this.text(sql), values, rowMode: 'array', types };
  }

  text(sql: string): string {
    let text = this.#texts.get(sql);
    if (text === undefined) {
      text = sql.replaceAll('@.', `${this.schema}.`);
      this.#texts.set(sql, text);
    }
    return text;
  }

  /** One statement in a transaction of its own. It may be carried out twice, so it must be safe to repeat. */
  async query<Row extends readonly unknown[]>(sql: string, values: unknown[] = []): Promise<Row[]> {
    const statement = this.statement(sql, values);
    for (let tries = 1; ; tries++) {
      try {
        const { rows } = await this.#hosts.query(statement);
        return rows as Row[];
      } catch (error) {
        if (isAway(error)) this.#hosts.doubt();
        if (!isConflict(error) || tries >= MOST_TRIES) throw toStoreError(error, this.#hosts.name);
        await this.#stepBack(FIRST_PAUSE_MS * 2 ** tries);
      }
    }
  }

  close(): Promise<void> {
    return this.#hosts.close();
  }

  #stepBack(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.after(ms * (0.5 + this.clock.random()), resolve));
  }
}
