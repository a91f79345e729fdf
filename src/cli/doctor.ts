import type { CliCommand, Shell } from './command.ts';
import { naming, shownName } from './database.ts';
import { type Check, type Health, worst } from './doctor/check.ts';
import { examine } from './doctor/examine.ts';
import { count } from './doctor/words.ts';
import type { Output, Style } from './output.ts';
import { printable, widthOf, wrap } from './printable.ts';

export function addDoctor(program: CliCommand, shell: Shell): void {
  program
    .command('doctor')
    .description(
      'Check the database and its surroundings: settings, privileges, tables, clocks, jobs. Changes nothing.',
    )
    .addHelpText(
      'after',
      '\nEach check is ok, warn (it works, but should be looked at) or bad. Exit code 1 when one is bad.\nWith --json: { database, health, checks: [{ name, health, found, advice }] }.',
    )
    .action(() => doctor(shell));
}

async function doctor(shell: Shell): Promise<void> {
  const { output } = shell;
  const database = shell.database();
  const checks = await naming(database, () => examine(database));
  const health = worst(checks);
  output.answer({ database: shownName(database), health, checks }, () => [
    ...checkLines(checks, output),
    '',
    summary(checks, output),
  ]);
  if (health === 'bad') shell.exitCode = 1;
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
