import type { Moment, Selection } from '../bulk/selection.ts';
import { checkOneOf, unexpected } from '../config.ts';
import type { Duration } from '../duration.ts';
import { states } from '../job.ts';
import { deadReasons } from '../retry/decision.ts';
import type { CliCommand } from './command.ts';
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
  command
    .option('--id <ids...>', 'those with these ids')
    .option('--name <name>', 'those of this name')
    .option('--queue <queue>', 'those of this queue');
  if (about === 'any') command.option('--state <states...>', `those in these states: ${states.join(', ')}`);
  return command
    .option('--reason <reason>', `those that are dead for this reason: ${deadReasons.join(', ')}`)
    .option('--error <fingerprint>', 'those whose last error has this fingerprint')
    .option('--message <text>', 'those whose last error has this in its message; looks at 100,000 jobs at most')
    .option('--tag <tag>', 'those with this tag')
    .option('--key <key>', 'those with this key')
    .option('--since <time>', 'ended since (not ended: enqueued since): 2h ago, or 2026-01-31T12:00Z')
    .option('--until <time>', 'the same, before')
    .option('--attempts <n|n..m>', 'at least so many attempts spent, or a range')
    .option('--limit <n>', limit);
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
  if (!isDuration(text)) throw unexpected(flag, 'how long ago, such as 2h, or a time such as 2026-01-31T12:00Z', text);
  return text as Exclude<Duration, number>;
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
