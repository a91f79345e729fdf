import { sqlitePath } from '../store/open.ts';
import { isPostgresUrl } from '../store/postgres/connection/address.ts';
import { connect, type Hosts } from '../store/postgres/connection/hosts.ts';
import { type Migrated, migrate, planMigration } from '../store/postgres/schema/migrate.ts';
import type { CliCommand, Shell } from './command.ts';
import { type Database, naming } from './database.ts';
import { printable } from './printable.ts';

interface Flags {
  readonly dryRun?: true;
}

export function addMigrate(program: CliCommand, shell: Shell): void {
  program
    .command('migrate')
    .description('Bring the schema of a PostgreSQL database up to date, or print the SQL that does.')
    .option('--dry-run', 'touch nothing, and print the SQL: mulligan migrate --dry-run | psql ...')
    .addHelpText(
      'after',
      '\nPostgreSQL only: a SQLite file is migrated when it is opened. Forward only, in one transaction; safe to call from\nseveral processes at once.\nWith --json: { schema, from, to }, and sql with --dry-run; schema is null for a file.',
    )
    .action((flags: Flags) => run(shell, flags.dryRun === true));
}

async function run({ output, ...shell }: Shell, dryRun: boolean): Promise<void> {
  const database = shell.database();
  if (!isPostgresUrl(database.url)) {
    const said = `${printable(sqlitePath(database.url))}: nothing to do here: a SQLite file is migrated when it is opened.`;
    if (dryRun) output.note(said);
    return output.answer({ schema: null }, () => (dryRun ? [] : [said]));
  }
  await naming(database, () => (dryRun ? print(database, output) : carryOut(database, output)));
}

async function print({ url }: Database, output: Shell['output']): Promise<void> {
  const { schema, from, to, sql } = await onServer(url, planMigration);
  // Only SQL on standard output, for psql to read.
  output.answer({ schema, from, to, sql }, () => (sql === '' ? [] : [sql.trimEnd()]));
  output.note(sql === '' ? nothingToDo(schema, to) : `-- ${step(schema, from, to)}; nothing was touched`);
}

async function carryOut({ url }: Database, output: Shell['output']): Promise<void> {
  const { schema, from, to } = await onServer(url, migrate);
  output.answer({ schema, from, to }, () => [from === to ? nothingToDo(schema, to) : step(schema, from, to)]);
}

function step(schema: string, from: number, to: number): string {
  return `schema ${schema}: version ${from} -> ${to}`;
}

function nothingToDo(schema: string, version: number): string {
  return `schema ${schema}: version ${version}, nothing to do`;
}

async function onServer<Answer extends Migrated>(
  url: string,
  action: (hosts: Hosts, schema: string) => Promise<Answer>,
): Promise<Answer & { readonly schema: string }> {
  const { hosts, schema } = await connect({ url });
  try {
    return { ...(await action(hosts, schema)), schema };
  } finally {
    await hosts.close();
  }
}
