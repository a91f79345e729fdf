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
