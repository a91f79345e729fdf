import { queuesOf } from '../definition.ts';
import type { Duration } from '../duration.ts';
import type { Mulligan } from '../mulligan.ts';
import type { LogEntry } from '../observe/log.ts';
import { flushSpans } from '../observe/opentelemetry.ts';
import { printable, printableJson } from '../printable.ts';
import { SECRET, scrub } from '../untrusted/scrub.ts';
import { leaveOutSecrets, withoutSecrets } from '../untrusted/secret-fields.ts';
import { toStoredError } from '../untrusted/stored-error.ts';
import { planWork, type WorkOptions } from '../worker/options.ts';
import type { Worker } from '../worker/worker.ts';
import type { CliCommand, Shell } from './command.ts';
import { shownName, withDatabase } from './database.ts';
import { loadDefinitions } from './definitions.ts';
import { given, namingFlags, read, readDuration, readInteger, readNumber } from './flags.ts';
import type { Output } from './output.ts';
import { span } from './time.ts';
import { reportRuns } from './work-report.ts';

interface Flags {
  readonly jobs: string;
  readonly queue?: readonly string[];
  readonly concurrency?: string;
  readonly lease?: string;
  readonly retryShare?: string;
  readonly maxRetriesInFlight?: string;
  readonly tracing?: true;
  readonly appVersion?: string;
  readonly grace?: string;
}

const DEFAULT_GRACE_MS = 10_000;

export function addWork(program: CliCommand, shell: Shell): void {
  program
    .command('work')
    .description('Run jobs until it is stopped. Creates the SQLite file, or the PostgreSQL schema, when there is none.')
    .requiredOption('--jobs <file>', 'a .ts or .js module that exports definitions, alone or in lists')
    .option('--queue <queue...>', 'the queues to serve (default: those that the definitions name, for retries too)')
    .option('--concurrency <n>', 'how many jobs run at once (default: 10)')
    .option('--lease <duration>', 'how long a silent worker keeps its jobs (default: 30s)')
    .option('--retry-share <0-1>', 'the part of the places that retries may take while fresh work waits (default: 0.2)')
    .option('--max-retries-in-flight <n>', 'per queue, over all workers: how many retries may run at once')
    .option('--tracing', 'OpenTelemetry spans, by the SDK that NODE_OPTIONS="--import ./telemetry.mjs" sets up')
    .option('--app-version <text>', 'the version of your application, for mulligan workers list')
    .option('--grace <duration>', 'how long runs may go on after a signal to stop (default: 10s)')
    .addHelpText(
      'after',
      '\nSIGINT (Ctrl-C) or SIGTERM stops it: no new jobs, and runs that do not end within the grace are released\nuncounted. A second signal ends it at once; its runs then count as crashed when their leases expire.\nIt deletes finished jobs after their retention, as it is stored: see mulligan retention.\nWith --json: one JSON object per event and line.',
    )
    .action((flags: Flags) => work(shell, flags));
}

async function work({ output, ...shell }: Shell, flags: Flags): Promise<void> {
  const database = shell.database();
  const graceMs = flags.grace === undefined ? DEFAULT_GRACE_MS : readDuration(flags.grace, '--grace');
  const jobs = await loadDefinitions(flags.jobs);
  const options = readOptions(flags);
  // A definition without a handler is only enqueued here.
  const handled = jobs.filter(({ run }) => run !== undefined);
  // Before a database is made for a worker that cannot start.
  const { queues } = namingFlags(/^work: (lease|queue)s?/, () => planWork(options, queuesOf(handled)));
  await withDatabase(
    database,
    { jobs, log: logTo(output, ['dead']), ...given('tracing', flags.tracing) },
    async (mulligan: Mulligan) => {
      reportRuns(mulligan, output);
      const worker = mulligan.work(options);
      output.lines([
        `Working on ${printable(queues.map(({ queue }) => queue).join(', '))} in ${printable(shownName(database))}: ${printable(
          handled
            .map(({ name }) => name)
            .sort()
            .join(', '),
        )}.`,
        'Ctrl-C stops it.',
      ]);
      await untilStopped(worker, graceMs, output);
    },
  );
  if (flags.tracing) {
    await flushSpans().catch((error) =>
      output.note(`The last spans could not be exported: ${printable(toStoredError(error).message)}`),
    );
  }
}

function readOptions(flags: Flags): WorkOptions {
  const { queue, concurrency, lease, retryShare, maxRetriesInFlight, appVersion } = flags;
  return {
    ...given('version', appVersion),
    ...given('queues', queue),
    ...read('concurrency', concurrency, (text) => readInteger(text, '--concurrency', { min: 1, max: 10_000 })),
    ...given('lease', lease as Duration | undefined),
    ...read('retryShare', retryShare, (text) => readNumber(text, '--retry-share', { min: 0, max: 1 })),
    ...read('maxRetriesInFlight', maxRetriesInFlight, (text) =>
      readInteger(text, '--max-retries-in-flight', { min: 1 }),
    ),
  };
}

/** The first signal stops gracefully, the second one at once. */
async function untilStopped(worker: Worker, graceMs: number, output: Output): Promise<void> {
  const signal = await new Promise<NodeJS.Signals>((resolve) => {
    let stopping = false;
    const onSignal = (name: NodeJS.Signals): void => {
      if (stopping) stopAtOnce(name, worker, output);
      stopping = true;
      resolve(name);
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
  });
  const wait = worker.running === 0 ? '' : `, waiting up to ${span(graceMs)} for ${worker.running} running`;
  output.lines([`${signal}: stopping${wait}. A second signal stops at once.`]);
  await worker.stop({ grace: graceMs });
  output.lines(['Stopped.']);
}

function stopAtOnce(signal: NodeJS.Signals, worker: Worker, output: Output): never {
  if (worker.running > 0) output.note(`Stopped at once: ${worker.running} running will count as crashed.`);
  process.exit(signal === 'SIGINT' ? 130 : 143);
}

/**
 * Entries on standard error: text, or JSON lines. Their fields may hold anything that a handler logs. `shown`: events that
 * are in the output already, line by line.
 */
export function logTo(output: Output, shown: readonly string[] = []): (entry: LogEntry) => void {
  return (entry) => {
    if (entry.level === 'debug' || shown.includes(String(entry.event))) return;
    const { level, message, ...rest } = plain(entry);
    const fields = Object.entries(rest).map(([key, value]) => ` ${printable(key)}=${printableJson(value)}`);
    output.log({ level, message, ...rest }, `mulligan ${level}: ${printable(String(message))}${fields.join('')}`);
  };
}

function plain(entry: LogEntry): Record<string, unknown> {
  const render = (value: unknown): unknown => {
    if (value instanceof Error) return scrub(`${value.name}: ${value.message}`);
    try {
      return JSON.parse(JSON.stringify(value, leaveOutSecrets) ?? 'null');
    } catch {
      return String(value);
    }
  };
  return Object.fromEntries(Object.entries(withoutSecrets(entry, SECRET)).map(([key, value]) => [key, render(value)]));
}
