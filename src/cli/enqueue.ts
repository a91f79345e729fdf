import { checkName, checkOneOf } from '../config.ts';
import type { EnqueueOptions } from '../enqueue-options.ts';
import { AccessError } from '../errors.ts';
import { printableJson } from '../printable.ts';
import { checkTags } from '../tags.ts';
import type { CliCommand, Shell } from './command.ts';
import { withDatabase } from './database.ts';
import { loadDefinitions } from './definitions.ts';
import { given, read, readDuration, readInteger, readJson, readStdin } from './flags.ts';

interface Flags {
  readonly delay?: string;
  readonly priority?: string;
  readonly key?: string;
  readonly maxAttempts?: string;
  readonly queue?: string;
  readonly jobs?: string;
  readonly debounce?: string;
  readonly throttle?: string;
  readonly tag?: readonly string[];
  readonly wait?: string | true;
}

export function addEnqueue(program: CliCommand, shell: Shell): void {
  program
    .command('enqueue')
    .description('Store a job. Creates the SQLite file, or the PostgreSQL schema, when there is none.')
    .argument('<name>', "the job's name, such as email.send")
    .argument('<json>', 'its input as JSON, or - to read it from standard input')
    .option('--delay <duration>', 'run no sooner than this from now')
    .option('--priority <0-9>', "0 runs first, 9 last (default: the definition's, or 5)")
    .option('--key <key>', 'at most one live job per name and key; a second enqueue returns the first job')
    .option('--debounce <duration>', 'with --key: wait this long, and replace a job of the key that still waits')
    .option('--throttle <duration>', 'with --key: store one job of the key in this time; others return it')
    .option('--tag <tags...>', 'texts that the job is found by, such as endpoint:42')
    .option('--max-attempts <n>', 'attempts in total, the first included: 1 means never retry')
    .option('--queue <queue>', "the queue (default: the definition's, or default)")
    .option(
      '--jobs <file>',
      'a module with definitions: the name must be one of theirs, the input is checked and the definition used',
    )
    .option('--wait [duration]', 'wait until the job has ended, at most this long, and print its result')
    .addHelpText(
      'after',
      "\nWithout --jobs only the name is known: the input is not checked, and the job gets the queue default, the standard\nretry policy, no resource and no limits: it waits behind no gate and no limit, and onLimit is not obeyed. A resource\nthat the application gives a whole queue is not known here.\nPrints the job's id; with --json: { id, existed }. With --wait: the result as JSON; with --json: { id, existed, result }.\nA job that is dead, cancelled or not ended in time is an error, with exit code 1.",
    )
    .action((name: string, json: string, flags: Flags) => enqueue(shell, name, json, flags));
}

async function enqueue({ output, ...shell }: Shell, name: string, json: string, flags: Flags): Promise<void> {
  const database = shell.database();
  checkName(name, 'the job name');
  const options = readOptions(flags);
  const input = readJson(json === '-' ? await readStdin() : json, 'the input');
  const jobs = flags.jobs === undefined ? [] : await loadDefinitions(flags.jobs);
  if (flags.jobs !== undefined) {
    const known = jobs.map((job) => job.name).sort();
    checkOneOf(name, known, `the job name, by --jobs ${flags.jobs}`);
  }
  const { wait } = flags;
  const timeout = typeof wait === 'string' ? { timeout: readDuration(wait, '--wait') } : {};
  const { id, existed, replaced, result } = await withDatabase(database, { jobs }, async (mulligan) => {
    const enqueued = await mulligan.enqueue(name, input, options);
    if (wait === undefined) return { ...enqueued, result: undefined };
    const ended = mulligan.result(enqueued.id, timeout).catch((error: unknown) => {
      // A token that may write and not read: the job is stored, and without its id it would be enqueued once more.
      if (error instanceof AccessError) {
        output.answer({ id: enqueued.id, existed: enqueued.existed }, () => [enqueued.id]);
        output.note('The job is stored; only its result cannot be waited for.');
      }
      throw error;
    });
    return { ...enqueued, result: (await ended) ?? null };
  });
  if (wait !== undefined) {
    output.answer({ id, existed, ...(replaced && { replaced }), result }, () => [printableJson(result)]);
    return;
  }
  // The id alone on standard output, so that a script can take it as it is.
  output.answer({ id, existed, ...(replaced && { replaced }) }, () => [id]);
  if (replaced) output.note('A job of this key still waited; it has the new input now.');
  else if (existed) output.note('This is the job that holds the key, or fills a limit; nothing was added.');
}

function readOptions(flags: Flags): EnqueueOptions {
  const { maxAttempts, delay, priority, key, queue, debounce, throttle, tag } = flags;
  const most = read('maxAttempts', maxAttempts, (text) =>
    readInteger(text, '--max-attempts', { min: 1, hint: 'It counts the first attempt too: 1 means never retry.' }),
  );
  return {
    ...read('delay', delay, (text) => readDuration(text, '--delay')),
    ...read('priority', priority, (text) =>
      readInteger(text, '--priority', { min: 0, max: 9, hint: '0 runs first, 9 last.' }),
    ),
    ...read('key', key, (text) => checkName(text, '--key')),
    ...read('debounce', debounce, (text) => readDuration(text, '--debounce')),
    ...read('throttle', throttle, (text) => readDuration(text, '--throttle')),
    ...read('queue', queue, (text) => checkName(text, '--queue')),
    ...given('tags', tag && (checkTags(tag, '--tag') ?? undefined)),
    ...(maxAttempts === undefined ? {} : { retry: most }),
  };
}
