import { createInterface } from 'node:readline/promises';
import type { BulkProgress, BulkResult, OtherJob } from '../bulk/bulk.ts';
import type { Rate } from '../bulk/rate.ts';
import { systemClock } from '../clock.ts';
import type { Mulligan } from '../mulligan.ts';
import type { BulkOptions } from '../operate.ts';
import type { SkipReason } from '../store/store.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { Failure } from './failure.ts';
import { given } from './flags.ts';
import { jobListLines } from './job-list.ts';
import type { Output } from './output.ts';
import { printable } from './printable.ts';

/* What `jobs cancel`, `jobs run-now`, `dead redrive` and `dead discard` have in common. */

export interface BulkFlags {
  readonly dryRun?: true;
  readonly yes?: true;
  readonly by?: string;
}

export function bulkOptions(command: CliCommand): CliCommand {
  return command
    .option('--dry-run', 'print how many jobs match and a few of them, and change nothing')
    .option('--by <who>', 'who orders it, for the record (default: user@host)');
}

/** For commands that cannot be undone. */
export function askingOption(command: CliCommand): CliCommand {
  return command.option('--yes', 'do not ask');
}

export function rateOption(command: CliCommand): CliCommand {
  return command.option('--rate <rate>', 'spread the jobs over time: 50/s, 300/m or 1000/h');
}

export const BULK_JSON = `
With --json: { dryRun, count, isExact, samples, ids, skipped: [{ id, why }], others: [{ id, state, use }], operation,
resumed, stopped }. A command that was interrupted continues when it is given again. See mulligan operations list.`;

export interface BulkWords {
  /** redriven, discarded */
  readonly done: string;
  /** redrive, discard */
  readonly verb: string;
  /** What is selected: jobs, dead jobs */
  readonly what: string;
  /** Asks before: it cannot be undone. */
  readonly asks: boolean;
}

type Run = (mulligan: Mulligan, options: BulkOptions) => Promise<BulkResult>;

/** `advise`: what to say when nothing was found. */
export async function bulk(
  shell: Shell,
  flags: BulkFlags,
  words: BulkWords,
  run: Run,
  advise: (mulligan: Mulligan) => Promise<string | null> = async () => null,
): Promise<void> {
  const { output } = shell;
  const common = given('by', flags.by);
  let advice: string | null = null;
  const result = await withExisting(shell.database(), async (mulligan) => {
    if (words.asks && flags.yes !== true && flags.dryRun !== true) {
      const matching = await run(mulligan, { dryRun: true });
      // There is nothing to ask about, and jobs that come now were not asked about.
      if (matching.count === 0) {
        advice = await advise(mulligan);
        return { ...matching, dryRun: false };
      }
      await ask(matching, words);
    }
    const how = flags.dryRun ? { dryRun: true } : { onProgress: progressTo(output, words) };
    const done = await run(mulligan, { ...common, ...how });
    if (done.count === 0 && done.skipped.length === 0) advice = await advise(mulligan);
    return done;
  });
  output.answer(result, () => lines(result, words, output));
  if (advice !== null) output.note(advice);
  const isAsked = result.others.length > 0 || (result.skipped.length > 0 && result.count === 0);
  if (result.stopped !== null || isAsked) shell.exitCode = 1;
}

async function ask({ count, isExact }: BulkResult, { verb, what }: BulkWords): Promise<void> {
  const many = `${isExact ? '' : 'at least '}${countOf(count, what)}`;
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new Failure(
      'USAGE',
      `expected --yes to ${verb} ${many}, since no one can be asked. Nothing was changed; --dry-run shows them.`,
    );
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`This will ${verb} ${many} for good. Continue? [y/N] `);
    if (!/^y(es)?$/i.test(answer.trim())) throw new Failure('NOT_DONE', 'nothing was changed.');
  } finally {
    terminal.close();
  }
}

const SAID_EVERY_MS = 1_000;

/** A line on standard error now and then. */
function progressTo(output: Output, { done }: BulkWords): (progress: BulkProgress) => void {
  let saidAt = systemClock.monotonic();
  let waitedFor = -1;
  return ({ changed, skipped, total, canary }) => {
    if (canary !== null && canary.ended !== waitedFor) {
      waitedFor = canary.ended;
      output.note(`canary: ${canary.ended} of ${canary.jobs} have ended.`);
    }
    const now = systemClock.monotonic();
    if (canary !== null || total.count === 0 || now - saidAt < SAID_EVERY_MS) return;
    saidAt = now;
    output.note(`${number(changed + skipped)} of ${total.isExact ? '' : 'at least '}${number(total.count)} ${done}.`);
  };
}

const SHOWN = 20;

function lines(result: BulkResult, { done, verb, what }: BulkWords, output: Output): string[] {
  const { dryRun, count, isExact, samples, ids, skipped, others, operation, resumed, stopped } = result;
  if (dryRun) {
    const head = `Would ${verb} ${isExact ? '' : 'at least '}${countOf(count, what)}${samples.length > 0 && count > samples.length ? ', such as' : ''}${samples.length > 0 ? ':' : '.'}`;
    return [head, ...(samples.length > 0 ? jobListLines(samples, output) : []), ...othersLines(others)];
  }
  const head = `${done[0]?.toUpperCase()}${done.slice(1)} ${countOf(count, what)}.`;
  return [
    ...(resumed && operation !== null
      ? [
          `Continued what ${printable(operation.by)} began at ${new Date(operation.startedAt).toISOString()}; jobs that came since are left alone.`,
        ]
      : []),
    head,
    ...(ids.length <= SHOWN ? ids.map((id) => `  ${printable(id)}`) : []),
    ...skipped.slice(0, SHOWN).map(({ id, why }) => `${printable(id)} stays as it is: ${skipWords[why]}.`),
    ...(skipped.length > SHOWN ? [`And ${number(skipped.length - SHOWN)} more were skipped.`] : []),
    ...othersLines(others),
    ...(stopped === null ? [] : [`The rest was left as it is: ${printable(stopped)}`]),
  ];
}

const skipWords: Readonly<Record<SkipReason, string>> = {
  'key-taken': 'a live job holds its key',
  'nothing-left': 'it has no attempt left to keep',
};

const commandFor: Readonly<Record<string, string>> = {
  'dead.redrive': 'mulligan dead redrive',
  'jobs.runNow': 'mulligan jobs run-now',
  enqueue: 'mulligan enqueue for a new job',
};

function othersLines(others: readonly OtherJob[]): string[] {
  const shown = others.slice(0, SHOWN).map(({ id, state, use }) => {
    if (state === 'not-found') return `${printable(id)} does not exist.`;
    if (state === 'not-selected') return `${printable(id)} was left alone: another option left it out.`;
    return `${printable(id)} is ${state}.${use === null ? '' : ` Use ${commandFor[use] ?? use}.`}`;
  });
  return others.length > SHOWN ? [...shown, `And ${number(others.length - SHOWN)} more.`] : shown;
}

export function number(value: number): string {
  return value.toLocaleString('en-US');
}

function countOf(count: number, what: string): string {
  return `${number(count)} ${count === 1 ? what.replace(/s$/, '') : what}`;
}

/** As the API takes it, which checks it. */
export function readRate(rate: string | undefined): { readonly rate?: Rate } {
  return given('rate', rate as Rate | undefined);
}
