import { systemClock } from '../clock.ts';
import { checkOneOf, unexpected } from '../config.ts';
import { type Duration, parseDuration } from '../duration.ts';
import { UnknownNameError } from '../errors.ts';
import { printable } from '../printable.ts';
import { misfirePolicies } from '../schedule/plan.ts';
import { overlaps, type ScheduleOptions } from '../schedule-options.ts';
import type { ScheduleInfo } from '../schedules.ts';
import { type ByFlags, byOption, type CliCommand, type Shell } from './command.ts';
import { withDatabase, withExisting } from './database.ts';
import { loadDefinitions } from './definitions.ts';
import { Failure } from './failure.ts';
import { given, read, readInteger, readJson, readStdin } from './flags.ts';
import { scheduleFacts, scheduleListLines } from './schedule-facts.ts';
import { iso } from './time.ts';

const PAGE = 50;
const LARGEST_PAGE = 10_000;
const NEXT_SHOWN = 5;

interface SetFlags extends ByFlags {
  readonly cron?: string;
  readonly timezone?: string;
  readonly every?: string;
  readonly anchor?: string;
  readonly at?: string;
  readonly misfire?: string;
  readonly misfireLimit?: string;
  readonly overlap?: string;
  readonly queue?: string;
  readonly priority?: string;
  readonly maxAttempts?: string;
  readonly jobs?: string;
}

export function addSchedules(program: CliCommand, shell: Shell): void {
  const schedules = program.command('schedules').description('Jobs that recur, or run once at a given time.');
  schedules
    .command('list')
    .description('All schedules, by name.')
    .option('--limit <n>', `how many (default: ${PAGE})`)
    .option('--after <name>', 'continue after this one')
    .addHelpText('after', '\nWith --json: { schedules: [...] }, times in ms since the epoch.')
    .action((flags: { limit?: string; after?: string }) => list(shell, flags));
  schedules
    .command('show')
    .description('One schedule, its last job and its next ticks.')
    .argument('<name>', 'the name of the schedule')
    .option('--next <n>', `how many of the next ticks (default: ${NEXT_SHOWN})`)
    .addHelpText('after', '\nWith --json: { schedule, nextTimes, lastJob, now }, times in ms since the epoch.')
    .action((name: string, flags: { next?: string }) => show(shell, name, flags));
  byOption(schedules.command('set'))
    .description('Create a schedule, or change the one of this name. Workers enqueue a job at each of its ticks.')
    .argument('<name>', 'the name of the schedule')
    .argument('<job>', 'the name of its jobs, such as report.daily')
    .argument('[json]', 'their input as JSON, or - to read it from standard input', '{}')
    .option('--cron <pattern>', "when, as a cron pattern of 5 fields, or of 6 with seconds first: '0 3 * * *'")
    .option('--timezone <name>', 'the time zone of --cron (default: UTC)')
    .option('--every <duration>', 'when, as a distance of at least 1s')
    .option('--anchor <time>', 'a time at which --every ticks, such as 2026-01-01T00:00:00Z (default: the epoch)')
    .option('--at <time>', 'once, at this time, such as 2026-12-24T18:00:00Z')
    .option(
      '--misfire <policy>',
      `for ticks more than a minute late, one of ${misfirePolicies.join(', ')} (default: once)`,
    )
    .option('--misfire-limit <n>', 'the most jobs of --misfire all (default: 100)')
    .option('--overlap <rule>', 'skip enqueues no job while one of this schedule is live (default: allow)')
    .option('--queue <queue>', "the queue (default: the definition's, or default)")
    .option('--priority <0-9>', "0 runs first, 9 last (default: the definition's, or 5)")
    .option('--max-attempts <n>', 'attempts of each job in total, the first included')
    .option('--jobs <file>', 'a module with definitions: the input is checked and the definition used')
    .addHelpText(
      'after',
      '\nWithout --jobs only the name of the job is known: its input is not checked, and its jobs get the standard retry\npolicy and no resource. With --json: { schedule }, times in ms since the epoch.',
    )
    .action((name: string, job: string, json: string, flags: SetFlags) => set(shell, name, job, json, flags));
  byOption(schedules.command('pause'))
    .description('Fire no tick until it is resumed. Jobs that it has enqueued go on.')
    .argument('<name>', 'the name of the schedule')
    .addHelpText('after', '\nWith --json: { schedule }.')
    .action((name: string, flags: ByFlags) => setPaused(shell, name, 'pause', flags));
  byOption(schedules.command('resume'))
    .description('Go on with the first tick from now on. Ticks that passed meanwhile are left out.')
    .argument('<name>', 'the name of the schedule')
    .addHelpText('after', '\nWith --json: { schedule }.')
    .action((name: string, flags: ByFlags) => setPaused(shell, name, 'resume', flags));
  byOption(schedules.command('trigger'))
    .description('Enqueue a job of a schedule now. Its ticks stay as they are.')
    .argument('<name>', 'the name of the schedule')
    .addHelpText('after', "\nPrints the job's id; with --json: { id, existed }.")
    .action((name: string, flags: ByFlags) => trigger(shell, name, flags));
  byOption(schedules.command('remove'))
    .description(
      'Remove a schedule. Jobs that it has enqueued stay. One that is in code comes back when that opens again.',
    )
    .argument('<name>', 'the name of the schedule')
    .addHelpText('after', '\nWith --json: { name, removed }. Exit code 1 when there is none.')
    .action((name: string, flags: ByFlags) => remove(shell, name, flags));
}

async function list({ output, ...shell }: Shell, flags: { limit?: string; after?: string }): Promise<void> {
  const limit = flags.limit === undefined ? PAGE : readInteger(flags.limit, '--limit', { min: 1, max: LARGEST_PAGE });
  const options = { limit, ...given('after', flags.after) };
  const schedules = await withExisting(shell.database(), (mulligan) => mulligan.schedules.list(options));
  output.answer({ schedules }, () =>
    schedules.length === 0 ? ['There is no schedule.'] : scheduleListLines(schedules, systemClock.now(), output),
  );
  const last = schedules.at(-1);
  if (last !== undefined && schedules.length === limit) {
    output.note(`There may be more: --after ${JSON.stringify(printable(last.name))} continues.`);
  }
}

async function show({ output, ...shell }: Shell, name: string, flags: { next?: string }): Promise<void> {
  const options = read('next', flags.next, (text) => readInteger(text, '--next', { min: 0, max: 1_000 }));
  const details = await withExisting(shell.database(), (mulligan) => mulligan.schedules.show(name, options));
  if (details === null) throw unknown(name);
  output.answer(details, () => scheduleFacts(details, output));
}

async function set(
  { output, ...shell }: Shell,
  name: string,
  job: string,
  json: string,
  flags: SetFlags,
): Promise<void> {
  const database = shell.database();
  const options = readSetFlags(flags);
  const input = readJson(json === '-' ? await readStdin() : json, 'the input');
  const jobs = flags.jobs === undefined ? [] : await loadDefinitions(flags.jobs);
  if (flags.jobs !== undefined) {
    const known = jobs.map((one) => one.name).sort();
    checkOneOf(job, known, `the job name, by --jobs ${flags.jobs}`);
  }
  const schedule = await withDatabase(database, { jobs }, (mulligan) =>
    mulligan.schedules.set(name, job, input, options, given('by', flags.by)),
  );
  output.answer({ schedule }, () => [`Schedule ${printable(name)} is set. ${nextText(schedule)}`]);
}

function readSetFlags(flags: SetFlags): ScheduleOptions {
  const { cron, timezone, queue } = flags;
  return {
    ...given('cron', cron),
    ...given('timezone', timezone),
    ...read('every', flags.every, (text) => parseDuration(text as Duration, '--every')),
    ...read('anchor', flags.anchor, (text) => readTime(text, '--anchor')),
    ...read('at', flags.at, (text) => readTime(text, '--at')),
    ...read('misfire', flags.misfire, (text) => checkOneOf(text, misfirePolicies, '--misfire')),
    ...read('misfireLimit', flags.misfireLimit, (text) =>
      readInteger(text, '--misfire-limit', { min: 1, max: 10_000 }),
    ),
    ...read('overlap', flags.overlap, (text) => checkOneOf(text, overlaps, '--overlap')),
    ...given('queue', queue),
    ...read('priority', flags.priority, (text) =>
      readInteger(text, '--priority', { min: 0, max: 9, hint: '0 runs first, 9 last.' }),
    ),
    ...read('retry', flags.maxAttempts, (text) => ({
      maxAttempts: readInteger(text, '--max-attempts', {
        min: 1,
        hint: 'It counts the first attempt too: 1 means never retry.',
      }),
    })),
  };
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** With a zone: without one, it would depend on the machine. */
function readTime(text: string, flag: string): Date {
  const time = new Date(text);
  if (TIME.test(text) && !Number.isNaN(time.getTime())) return time;
  throw unexpected(flag, 'a time with its zone, such as 2026-12-24T18:00:00Z or 2026-12-24T19:00:00+01:00', text);
}

async function setPaused(
  { output, ...shell }: Shell,
  name: string,
  verb: 'pause' | 'resume',
  { by }: ByFlags,
): Promise<void> {
  const schedule = await withExisting(shell.database(), (mulligan) =>
    existing(name, mulligan.schedules[verb](name, given('by', by))),
  );
  const text = verb === 'pause' ? 'is paused.' : `is active. ${nextText(schedule)}`;
  output.answer({ schedule }, () => [`Schedule ${printable(name)} ${text}`]);
}

function nextText({ paused, nextAt }: ScheduleInfo): string {
  if (paused) return 'It is paused.';
  return nextAt === null ? 'It has no next tick.' : `Next tick: ${iso(nextAt)}.`;
}

async function trigger({ output, ...shell }: Shell, name: string, { by }: ByFlags): Promise<void> {
  const { id, existed } = await withExisting(shell.database(), (mulligan) =>
    existing(name, mulligan.schedules.trigger(name, given('by', by))),
  );
  output.answer({ id, existed }, () => [id]);
  if (existed) output.note('A job of this schedule is live, and it must not overlap; nothing was added.');
}

async function remove({ output, ...shell }: Shell, name: string, { by }: ByFlags): Promise<void> {
  const removed = await withExisting(shell.database(), (mulligan) => mulligan.schedules.remove(name, given('by', by)));
  if (!removed) throw unknown(name);
  output.answer({ name, removed }, () => [`Schedule ${printable(name)} is removed.`]);
}

function existing<T>(name: string, ordered: Promise<T>): Promise<T> {
  return ordered.catch((error: unknown) => {
    throw error instanceof UnknownNameError ? unknown(name, error.hint) : error;
  });
}

function unknown(name: string, hint = 'See mulligan schedules list for what there is.'): Failure {
  return new Failure('NOT_FOUND', `there is no schedule ${JSON.stringify(name)}. ${hint}`);
}
