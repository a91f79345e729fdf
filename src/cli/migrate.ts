import { printable } from '../printable.ts';
import { sqlitePath } from '../store/open.ts';
import { isPostgresUrl } from '../store/postgres/connection/address.ts';
import { connect } from '../store/postgres/connection/connect.ts';
import type { Hosts } from '../store/postgres/connection/hosts.ts';
import { dropFunctions, type Migrated, migrate, planMigration } from '../store/postgres/schema/migrate.ts';
import { scrubAddress } from '../untrusted/scrub.ts';
import type { CliCommand, Shell } from './command.ts';
import { type Database, isServer, naming } from './database.ts';
import { wrongUsage } from './failure.ts';

interface Flags {
  readonly dryRun?: boolean;
  readonly dropFunctions?: string;
}

export function addMigrate(program: CliCommand, shell: Shell): void {
  program
    .command('migrate')
    .description('Bring the schema of a PostgreSQL database up to date, or print the SQL that does.')
    .option('--dry-run', 'touch nothing, and print the SQL: mulligan migrate --dry-run | psql ...')
    .option('--drop-functions <version>', 'remove the functions of a version that no process runs any more')
    .addHelpText(
      'after',
      '\nPostgreSQL only: a SQLite file is migrated when it is opened. Forward only, in one transaction; safe to call from\nseveral processes at once. Functions of other versions stay, because processes of those versions may still run;\nmulligan doctor lists them.\nWith --json: { schema, from, to, functions, installed }, and sql with --dry-run; schema is null for a file.',
    )
    .action((flags: Flags) => run(shell, flags));
}

async function run({ output, ...shell }: Shell, { dryRun = false, dropFunctions: version }: Flags): Promise<void> {
  const database = shell.database();
  if (isServer(database)) {
    throw wrongUsage(
      `${database.from}: expected the database itself, got the server ${scrubAddress(database.url)}. Migrate the database that it serves.`,
    );
  }
  if (!isPostgresUrl(database.url)) {
    const said = `${printable(sqlitePath(database.url))}: nothing to do here: a SQLite file is migrated when it is opened.`;
    if (dryRun) output.note(said);
    return output.answer({ schema: null }, () => (dryRun ? [] : [said]));
  }
  await naming(database, () => {
    if (version !== undefined) return drop(database, output, version);
    return dryRun ? print(database, output) : carryOut(database, output);
  });
}

async function print({ url }: Database, output: Shell['output']): Promise<void> {
  const plan = await onServer(url, planMigration);
  // Only SQL on standard output, for psql to read.
  output.answer(plan, () => (plan.sql === '' ? [] : [plan.sql.trimEnd()]));
  output.note(plan.sql === '' ? describe(plan) : `-- ${describe(plan)}; nothing was touched`);
}

async function carryOut({ url }: Database, output: Shell['output']): Promise<void> {
  const done = await onServer(url, migrate);
  output.answer(done, () => [describe(done)]);
}

async function drop({ url }: Database, output: Shell['output'], version: string): Promise<void> {
  const { schema, dropped } = await onServer(url, async (hosts, schema) => ({
    dropped: await dropFunctions(hosts, schema, version),
  }));
  output.answer({ schema, functions: version, dropped }, () => [
    dropped === 0
      ? `schema ${schema}: no functions ${printable(version)}`
      : `schema ${schema}: functions ${version} dropped`,
  ]);
}

function describe({ schema, from, to, functions, installed }: Migrated & { readonly schema: string }): string {
  if (from === to && !installed) return `schema ${schema}: version ${to}, nothing to do`;
  const tables = from === to ? `version ${to}` : `version ${from} -> ${to}`;
  return `schema ${schema}: ${tables}${installed ? `, functions ${functions}` : ''}`;
}

async function onServer<Answer extends object>(
  url: string,
  action: (hosts: Hosts, schema: string) => Promise<Answer>,
): Promise<Answer & { readonly schema: string }> {
  const { hosts, schema } = await connect({ url });
  try {
    return { schema, ...(await action(hosts, schema)) };
  } finally {
    await hosts.close();
  }
}
