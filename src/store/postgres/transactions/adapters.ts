import { unexpected } from '../../../config.ts';
import { read } from '../../../untrusted/thrown.ts';
import type { TransactionClient } from '../../store.ts';

/*
 * Clients of query builders, for `enqueue(..., { tx })`. Each takes the library's own transaction object, so the job
 * is committed or rolled back with what that transaction writes. None of the libraries is loaded here, so what is a
 * transaction is recognised by its shape.
 */

/** @example await db.transaction().execute((trx) => mulligan.enqueue(job, input, { tx: kyselyTx(trx) })) */
export function kyselyTx(trx: {
  executeQuery(query: never): Promise<{ readonly rows: unknown[] }>;
}): TransactionClient {
  check('kyselyTx', 'a transaction of Kysely', trx, has(trx, 'executeQuery') && read(trx, 'isTransaction') === true);
  const execute = trx.executeQuery.bind(trx) as (query: unknown) => Promise<{ rows: unknown[] }>;
  return clientOf(trx, {
    query: (sql, parameters) =>
      execute({
        sql,
        parameters,
        query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
        queryId: { queryId: 'mulligan' },
      }),
  });
}

/** @example await db.transaction((tx) => mulligan.enqueue(job, input, { tx: drizzleTx(tx, sql) })) */
export function drizzleTx(
  tx: { execute(query: never): PromiseLike<unknown> },
  /** Drizzle's own `sql`. */
  sql: { raw(text: string): unknown; param(value: unknown): unknown; join(parts: never): unknown },
): TransactionClient {
  // Only a transaction can be rolled back.
  check('drizzleTx', 'a transaction of Drizzle', tx, has(tx, 'execute') && has(tx, 'rollback'));
  check('drizzleTx', "Drizzle's own `sql` as the second argument", sql, has(sql, 'raw') && has(sql, 'param'));
  return clientOf(tx, {
    async query(text, values) {
      const parts = inOrder(text).flatMap(({ before, index }) => [
        sql.raw(before),
        ...(index === null ? [] : [sql.param(values[index])]),
      ]);
      return rowsOf(await tx.execute(sql.join(parts as never) as never));
    },
  });
}

/** @example await knex.transaction((trx) => mulligan.enqueue(job, input, { tx: knexTx(trx) })) */
export function knexTx(trx: { raw(text: string, values: never): PromiseLike<unknown> }): TransactionClient {
  check('knexTx', 'a transaction of Knex', trx, has(trx, 'raw') && read(trx, 'isTransaction') === true);
  return clientOf(trx, {
    async query(text, values) {
      const parts = inOrder(text);
      const marked = parts.map(({ before, index }) => before.replaceAll('?', '\\?') + (index === null ? '' : '?'));
      const bound = parts.flatMap(({ index }) => (index === null ? [] : [values[index]]));
      return rowsOf(await trx.raw(marked.join(''), bound as never));
    },
  });
}

/** @example await prisma.$transaction((tx) => mulligan.enqueue(job, input, { tx: prismaTx(tx) })) */
export function prismaTx(tx: {
  $queryRawUnsafe(text: string, ...values: never[]): PromiseLike<unknown>;
}): TransactionClient {
  // Only the client itself can connect.
  check('prismaTx', 'a transaction of Prisma', tx, has(tx, '$queryRawUnsafe') && !has(tx, '$connect'));
  return clientOf(tx, {
    query: async (text, values) => rowsOf(await tx.$queryRawUnsafe(text, ...(values as never[]))),
  });
}

const clients: WeakMap<object, TransactionClient> = new WeakMap();

/** One client for each transaction, however often it is wrapped: enqueues through one client wait for each other. */
function clientOf(transaction: object, made: TransactionClient): TransactionClient {
  const client = clients.get(transaction) ?? made;
  clients.set(transaction, client);
  return client;
}

/** Outside of a transaction a job would be committed at once, and stay when the caller rolls back. */
function check(adapter: string, expected: string, got: unknown, isIt: boolean): void {
  if (isIt) return;
  throw unexpected(adapter, expected, got, 'Give what the library hands to the function that is the transaction.');
}

function has(value: unknown, method: string): boolean {
  return typeof read(value, method) === 'function';
}

/** A statement taken apart at its $1, $2, ..., for libraries that count parameters in another way. */
function inOrder(text: string): { readonly before: string; readonly index: number | null }[] {
  const parts = text.split(/\$(\d+)/);
  const pairs: { before: string; index: number | null }[] = [];
  for (let at = 0; at < parts.length; at += 2) {
    const number = parts[at + 1];
    pairs.push({ before: parts[at] as string, index: number === undefined ? null : Number(number) - 1 });
  }
  return pairs;
}

/** Some libraries answer the rows alone. */
function rowsOf(answer: unknown): { readonly rows: unknown[] } {
  return Array.isArray(answer) ? { rows: answer } : (answer as { rows: unknown[] });
}
