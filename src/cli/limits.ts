import type { Duration } from '../duration.ts';
import type { LimitChange, RateOptions } from '../limit/options.ts';
import { KEYS_SHOWN, type LimitDetails, type LimitOrderOptions } from '../limits.ts';
import { printable } from '../printable.ts';
import { type ByFlags, byOption, type CliCommand, type Shell } from './command.ts';
import { withExisting } from './database.ts';
import { wrongUsage } from './failure.ts';
import { given, read, readDuration, readInteger } from './flags.ts';
import { changedText, keyListLines, limitFacts, limitListLines } from './limit-facts.ts';

const JSON_HELP = '\nWith --json: { limit, keys: [...] }, times in ms since the epoch.';
const NONE = 'none';

interface KeyFlags extends ByFlags {
  readonly key?: string;
}

interface SetFlags extends KeyFlags {
  readonly concurrency?: string;
  readonly total?: string;
  readonly rate?: string;
  readonly burst?: string;
}

export function addLimits(program: CliCommand, shell: Shell): void {
  const limits = program
    .command('limits')
    .description('See how many jobs of a key may run and start, and change it while workers run.');
  limits
    .command('list')
    .description('Limits by name: what they allow, and how much of them is in use.')
    .addHelpText('after', '\nWith --json: { limits: [...] }.')
    .action(() => list(shell));
  keyed(
    limits
      .command('show')
      .description(
        `One limit and its keys: those set by hand, then those with the most waiting jobs; ${KEYS_SHOWN} at most.`,
      ),
  )
    .addHelpText('after', JSON_HELP)
    .action((name: string, flags: KeyFlags) => show(shell, name, flags));
  keyed(
    byOption(limits.command('set')).description(
      'Change what a limit allows, or what it allows one key. Jobs that run go on; the others obey at once.',
    ),
  )
    .option('--concurrency <n>', 'how many jobs of one key may run at once; 0 to start none, or none for no bound')
    .option('--total <n>', 'how many jobs of all keys together may run at once; 0 to start none, or none for no bound')
    .option('--rate <rate>', 'how many jobs of one key may start in any such time: 90/10s, 5/m, or none')
    .option(
      '--burst <n>',
      'with --rate: so many may start at once after a pause (default: 1, and one more for each 50 of the limit); one that was chosen before stays',
    )
    .addHelpText('after', `\nWhat is left out stays as it was.${JSON_HELP}`)
    .action((name: string, flags: SetFlags) => set(shell, name, flags));
  keyed(
    byOption(limits.command('reset')).description(
      'Take away what was set by hand, of a limit or of one key: code decides again.',
    ),
  )
    .addHelpText('after', JSON_HELP)
    .action((name: string, flags: KeyFlags) => reset(shell, name, flags));
}

function keyed(command: CliCommand): CliCommand {
  return command.argument('<name>', 'the limit').option('--key <key>', 'one key of it');
}

function orderOf({ key, by }: KeyFlags): LimitOrderOptions {
  return { ...given('key', key), ...given('by', by) };
}

async function list({ output, ...shell }: Shell): Promise<void> {
  const limits = await withExisting(shell.database(), (mulligan) => mulligan.limits.list());
  output.answer({ limits }, () =>
    limits.length === 0
      ? ['No limit is known: no process was opened with a job that has one.']
      : limitListLines(limits, output),
  );
}

async function show({ output, ...shell }: Shell, name: string, flags: KeyFlags): Promise<void> {
  const details = await withExisting(shell.database(), (mulligan) =>
    mulligan.limits.show(name, given('key', flags.key)),
  );
  if (details === null)
    throw wrongUsage(`expected the name of a limit, got ${printable(name)}. See mulligan limits list.`);
  output.answer(details, () => [...limitFacts(details.limit, output), ...keyListLines(details, output)]);
  if (details.keys.length === KEYS_SHOWN) output.note('There may be more keys: --key shows one of them.');
}

async function set(shell: Shell, name: string, flags: SetFlags): Promise<void> {
  if (flags.burst !== undefined && (flags.rate ?? NONE) === NONE) {
    throw wrongUsage('--burst: expected --rate with it, such as --rate 90/10s.');
  }
  const change: LimitChange = {
    ...read('concurrency', flags.concurrency, (text) => countOf(text, '--concurrency')),
    ...read('total', flags.total, (text) => countOf(text, '--total')),
    ...read('rate', flags.rate, (text) => rateOf(text, flags.burst)),
  };
  if (Object.keys(change).length === 0) throw wrongUsage('expected what to set: --concurrency, --total or --rate.');
  await changed(
    shell,
    flags,
    await withExisting(shell.database(), ({ limits }) => limits.set(name, change, orderOf(flags))),
  );
}

async function reset(shell: Shell, name: string, flags: KeyFlags): Promise<void> {
  await changed(shell, flags, await withExisting(shell.database(), ({ limits }) => limits.reset(name, orderOf(flags))));
}

async function changed({ output }: Shell, { key }: KeyFlags, details: LimitDetails): Promise<void> {
  output.answer(details, () => [changedText(details.limit, key === undefined ? null : (details.keys[0] ?? null))]);
}

function countOf(text: string, flag: string): number | null {
  return text === NONE ? null : readInteger(text, flag, { min: 0, hint: `Or ${NONE} for no bound.` });
}

/** `90/10s`; a unit alone is one of it, as in the rates of other commands. */
function rateOf(text: string, burst: string | undefined): RateOptions | null {
  if (text === NONE) return null;
  const [, limit, per] = /^(\d+)\/(.+)$/.exec(text) ?? [];
  if (limit === undefined || per === undefined) {
    throw wrongUsage(`--rate: expected a number of starts and a time such as 90/10s or 5/m, got ${printable(text)}.`);
  }
  return {
    limit: Number(limit),
    per: readDuration(/^\D/.test(per) ? `1${per}` : per, '--rate') as Duration,
    ...read('burst', burst, (value) => readInteger(value, '--burst', { min: 1 })),
  };
}
