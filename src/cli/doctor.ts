import { printable, widthOf, wrap } from '../printable.ts';
import type { CliCommand, Shell } from './command.ts';
import { naming, shownName } from './database.ts';
import { loadDefinitions } from './definitions.ts';
import { type Check, type Health, worst } from './doctor/check.ts';
import { examine } from './doctor/examine.ts';
import { count } from './doctor/words.ts';
import type { Output, Style } from './output.ts';

export function addDoctor(program: CliCommand, shell: Shell): void {
  program
    .command('doctor')
    .description(
      'Check the database and its surroundings: settings, privileges, tables, clocks, jobs. Changes nothing.',
    )
    .option('--jobs <file>', 'a module with definitions: warns of schedules whose job is not among them')
    .addHelpText(
      'after',
      '\nEach check is ok, warn (it works, but should be looked at) or bad. Exit code 1 when one is bad.\nWith --json: { database, health, checks: [{ name, health, found, advice }] }.',
    )
    .action((flags: { readonly jobs?: string }) => doctor(shell, flags));
}

async function doctor(shell: Shell, { jobs }: { readonly jobs?: string }): Promise<void> {
  const { output } = shell;
  const database = shell.database();
  const checks = await naming(database, async () => examine(database, await namesIn(jobs)));
  const health = worst(checks);
  output.answer({ database: shownName(database), health, checks }, () => [
    ...checkLines(checks, output),
    '',
    summary(checks, output),
  ]);
  if (health === 'bad') shell.exitCode = 1;
}

async function namesIn(file: string | undefined): Promise<ReadonlySet<string> | null> {
  return file === undefined ? null : new Set((await loadDefinitions(file)).map(({ name }) => name));
}

const styles: Readonly<Record<Health, Style>> = { ok: 'green', warn: 'yellow', bad: 'red' };
const HEALTH_WIDTH = 6;
const NARROWEST = 30;

export function checkLines(checks: readonly Check[], output: Output): string[] {
  const nameWidth = Math.max(...checks.map(({ name }) => widthOf(name))) + 2;
  const indent = ' '.repeat(HEALTH_WIDTH + nameWidth);
  const width = Math.max(NARROWEST, output.columns - indent.length);
  return checks.flatMap(({ name, health, found, advice }) => {
    const label = output.paint(styles[health], health.padEnd(HEALTH_WIDTH));
    const [first = '', ...more] = wrap(printable(found), width);
    const advised = advice === null ? [] : wrap(`-> ${printable(advice)}`, width);
    return [`${label}${name.padEnd(nameWidth)}${first}`, ...[...more, ...advised].map((line) => `${indent}${line}`)];
  });
}

function summary(checks: readonly Check[], output: Output): string {
  const amount = (health: Health): number => checks.filter((check) => check.health === health).length;
  const parts = [`${amount('ok')} ok`, count(amount('warn'), 'warning'), `${amount('bad')} bad`];
  return output.paint(styles[worst(checks)], `${parts.join(', ')}.`);
}
