import type { Moment, Selection } from '../bulk/selection.ts';
import { checkOneOf, unexpected } from '../config.ts';
import { states } from '../job.ts';
import { deadReasons } from '../retry/decision.ts';
import type { CliCommand } from './command.ts';
import { wrongUsage } from './failure.ts';
import { given, read, readDuration, readInteger } from './flags.ts';

/* The flags of every command that selects jobs: those of the API's `Selection`, by the same names. */

export interface SelectionFlags {
  readonly id?: readonly string[];
  readonly name?: string;
  readonly queue?: string;
  readonly state?: readonly string[];
  readonly reason?: string;
  readonly error?: string;
  readonly message?: string;
  readonly tag?: string;
  readonly key?: string;
  readonly since?: string;
  readonly until?: string;
  readonly attempts?: string;
  readonly limit?: string;
}

/** `dead`: the command is about dead jobs only. */
export function selecting(command: CliCommand, about: 'any' | 'dead', limit = 'no more than this'): CliCommand {
  const one = (flags: string, meaning: string): CliCommand => command.option(flags, meaning, onlyOnce(flags));
  command.option('--id <ids...>', 'those with these ids');
  one('--name <name>', 'those of this name');
  one('--queue <queue>', 'those of this queue');
  if (about === 'any') command.option('--state <states...>', `those in these states: ${states.join(', ')}`);
  one('--reason <reason>', `those that are dead for this reason: ${deadReasons.join(', ')}`);
  one('--error <fingerprint>', 'those whose last error has this fingerprint');
  one(
    '--message <text>',
    'those whose last error has this in its message; lists and counts look at 100,000 jobs at most',
  );
  one('--tag <tag>', 'those with this tag');
  one('--key <key>', 'those with this key');
  one('--since <time>', 'ended since (not ended: enqueued since): 2h ago, or 2026-01-31T12:00Z');
  one('--until <time>', 'the same, before');
  one('--attempts <n|n..m>', 'at least so many attempts spent, or a range');
  return one('--limit <n>', limit);
}

/** Conditions add up, and the second of two tags would silently replace the first. */
function onlyOnce(flags: string): (value: string, before: string | undefined) => string {
  const [flag] = flags.split(' ');
  return (value, before) => {
    if (before === undefined) return value;
    throw wrongUsage(
      `expected ${flag} once, got ${JSON.stringify(before)} and ${JSON.stringify(value)}. Run the command once for each.`,
    );
  };
}

export function readFlags(flags: SelectionFlags, ids: readonly string[] = []): Selection {
  const all = [...ids, ...(flags.id ?? [])];
  return {
    ...given('ids', all.length === 0 ? undefined : all),
    ...given('name', flags.name),
    ...given('queue', flags.queue),
    ...given('state', flags.state && readStates(flags.state)),
    ...read('reason', flags.reason, (text) => checkOneOf(text, deadReasons, '--reason')),
    ...given('error', flags.error),
    ...given('message', flags.message),
    ...given('tag', flags.tag),
    ...given('key', flags.key),
    ...read('since', flags.since, (text) => readMoment(text, '--since')),
    ...read('until', flags.until, (text) => readMoment(text, '--until')),
    ...read('attempts', flags.attempts, readAttempts),
    ...read('limit', flags.limit, (text) => readInteger(text, '--limit', { min: 1 })),
  };
}

export function isEmpty(selection: Selection): boolean {
  return Object.keys(selection).every((name) => name === 'limit');
}

function readStates(texts: readonly string[]): NonNullable<Selection['state']> {
  return texts.flatMap((text) => text.split(',')).map((text) => checkOneOf(text.trim(), states, '--state'));
}

export function readMoment(text: string, flag: string): Moment {
  if (/^\d{4}-\d\d/.test(text)) {
    const date = new Date(text);
    if (!Number.isNaN(date.getTime())) return date;
    throw unexpected(flag, 'a time such as 2026-01-31T12:00Z', text);
  }
  if (!isDuration(text.replace(/ ago$/, '')))
    throw unexpected(flag, 'how long ago, such as 2h, or a time such as 2026-01-31T12:00Z', text);
  return text as Moment;
}

function isDuration(text: string): boolean {
  try {
    readDuration(text, 'duration');
    return true;
  } catch {
    return false;
  }
}

function readAttempts(text: string): NonNullable<Selection['attempts']> {
  const [min = '', max] = text.split('..');
  const least = readInteger(min, '--attempts', { min: 0 });
  return max === undefined ? least : { min: least, max: readInteger(max, '--attempts', { min: least }) };
}
