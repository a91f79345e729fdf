import { randomUUID } from 'node:crypto';
import pg from 'pg';

/** A name for a schema that no other test uses. */
export function newSchema(): string {
  return `test_${randomUUID().replaceAll('-', '').slice(0, 16)}`;
}

export async function runSql(url: string, text: string, values: unknown[] = []): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}

/** Lets tests move the store's time: by a shift, which the server's clock is added to, or to a time that stands still. */
export async function movableTime(url: string, schema: string): Promise<void> {
  await runSql(
    url,
    `CREATE TABLE ${schema}.test_time (shift bigint NOT NULL);
     INSERT INTO ${schema}.test_time VALUES (0);
     CREATE OR REPLACE FUNCTION ${schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
     AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + shift FROM ${schema}.test_time $$`,
  );
}

/**
 * Schemas that a test file uses again: to empty one takes a tenth of the time that it takes to make one. Each has a movable
 * time (see above).
 */
export class ReusedSchemas {
  readonly #url: string;
  readonly #free: string[] = [];

  constructor(url: string) {
    this.#url = url;
  }

  /** An empty one, which `make` has made at some time. */
  async take(make: (schema: string) => Promise<void>): Promise<string> {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const schema = newSchema();
    await make(schema);
    await movableTime(this.#url, schema);
    return schema;
  }

  async giveBack(schema: string): Promise<void> {
    await runSql(
      this.#url,
      `DO $$
       DECLARE name text;
       BEGIN
         FOR name IN SELECT tablename FROM pg_tables
           WHERE schemaname = '${schema}' AND tablename NOT IN ('schema_identity', 'function_sets', 'expiry', 'test_time', 'history_mark')
         LOOP
           EXECUTE format('DELETE FROM ${schema}.%I', name);
         END LOOP;
         UPDATE ${schema}.expiry SET looked_at = 0, suspended_until = 0;
         UPDATE ${schema}.history_mark SET counted_to = 0, next_at = NULL;
         UPDATE ${schema}.test_time SET shift = 0;
       END $$`,
    );
    this.#free.push(schema);
  }

  async drop(): Promise<void> {
    for (const schema of this.#free.splice(0)) await runSql(this.#url, `DROP SCHEMA ${schema} CASCADE`);
  }
}
