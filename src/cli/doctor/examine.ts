import { isPostgresUrl } from '../../store/postgres/connection/address.ts';
import { type Database, isServer, refuseMissing } from '../database.ts';
import type { Check } from './check.ts';

/** Everything there is to know about a database. Each kind is loaded only when it is asked for. */
export async function examine(database: Database, known: ReadonlySet<string> | null = null): Promise<Check[]> {
  if (isPostgresUrl(database.url)) {
    const { examinePostgres } = await import('./postgres/examine.ts');
    return examinePostgres(database, known);
  }
  if (isServer(database)) {
    const { examineServer } = await import('./server.ts');
    return examineServer(database, known);
  }
  refuseMissing(database);
  const { examineSqlite } = await import('./sqlite.ts');
  return examineSqlite(database, known);
}
