import { createInterface } from 'node:readline/promises';
import type { BulkProgress, BulkResult } from '../bulk/bulk.ts';
import type { Rate } from '../bulk/rate.ts';
import type { Selection } from '../bulk/selection.ts';
import { systemClock } from '../clock.ts';
import type { Mulligan } from '../mulligan.ts';
import type { BulkOptions } from '../operate.ts';
import { type BulkWords, bulkLines, countOf, number } from './bulk-lines.ts';
import { type ByFlags, byOption, type CliCommand, type Shell } from './command.ts';
import { withExisting } from './database.ts';
import { Failure } from './failure.ts';
import { given } from './flags.ts';
import type { Output } from './output.ts';
import { hintAtNothing, wholeIds } from './which-jobs.ts';

/* What `jobs cancel`, `jobs run-now`, `dead redrive` and `dead discard` have in common. */

export interface BulkFlags extends ByFlags {
  readonly dryRun?: true;
  readonly yes?: true;
}

export function bulkOptions(command: CliCommand): CliCommand {
  return byOption(command.option('--dry-run', 'print how many jobs match and a few of them, and change nothing'));
}

/** For commands that cannot be undone. */
export function askingOption(command: CliCommand): CliCommand {
  return command.option('--yes', 'do not ask');
}

/** For the others, so that a script may give it to all of them. */
function neverAskingOption(command: CliCommand): CliCommand {
  return command.option('--yes', 'has no effect: this command never asks');
}

/** For those that let jobs run: they never ask. */
export function rateOption(command: CliCommand): CliCommand {
  return neverAskingOption(command).option('--rate <rate>', 'spread the jobs over time: 50/s, 300/m or 1000/h');
}

export const BULK_JSON = `
With --json: { dryRun, count, isExact, samples, ids, skipped: [{ id, why }], cancelling, dueUntil,
others: [{ id, state, use }], operation, resumed, stopped }. A command that was interrupted continues when it is given again. See mulligan audit list.`;

type Run = (mulligan: Mulligan, options: BulkOptions & { readonly ids?: readonly string[] }) => Promise<BulkResult>;

/** `run` gets whole ids where the selection has the start of some. `advise`: what to say when nothing was found. */
export async function bulk(
  shell: Shell,
  flags: BulkFlags,
  words: BulkWords,
  selection: Selection,
  run: Run,
  advise: (mulligan: Mulligan) => Promise<string | null> = async () => null,
): Promise<void> {
  const { output } = shell;
  let advice: string | null = null;
  const result = await withExisting(shell.database(), async (mulligan) => {
    const ids = selection.ids === undefined ? undefined : await wholeIds(mulligan, selection.ids);
    const common = { ...given('by', flags.by), ...given('ids', ids) };
    const hint = async (): Promise<string | null> =>
      (await advise(mulligan)) ?? (await hintAtNothing(mulligan, selection));
    if (words.asks && flags.yes !== true && flags.dryRun !== true) {
      const matching = await run(mulligan, { ...common, dryRun: true });
      // There is nothing to ask about, and jobs that come now were not asked about.
      if (matching.count === 0 && matching.isExact) {
        advice = await hint();
        return { ...matching, dryRun: false, operation: null, resumed: false };
      }
      await ask(matching, words);
    }
    const done = flags.dryRun
      ? await run(mulligan, { ...common, dryRun: true })
      : await interruptible(words, (signal) =>
          run(mulligan, { ...common, signal, onProgress: progressTo(output, words) }),
        );
    if (done.count === 0 && done.skipped.length === 0) advice = await hint();
    return done;
  });
  output.answer(result, () => bulkLines(result, words, output));
  if (advice !== null) output.note(advice);
  const isAsked = result.others.length > 0 || (result.skipped.length > 0 && result.count === 0);
  if (result.stopped !== null || isAsked) shell.exitCode = 1;
}

/** Ctrl-C ends it after the current part, and says how to go on. A second one ends it at once. */
async function interruptible<T>({ done }: BulkWords, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  process.once('SIGINT', interrupt);
  try {
    return await run(stop.signal);
  } catch (error) {
    if (!stop.signal.aborted || error !== stop.signal.reason) throw error;
    throw new Failure(
      'NOT_DONE',
      `interrupted: not all jobs are ${done.replace(/ now:$/, '')}. Give the same command again to go on; mulligan audit list says how far it came.`,
    );
  } finally {
    process.off('SIGINT', interrupt);
  }
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
/** While canaries are waited for and none has ended meanwhile. */
const WAITED_EVERY_MS = 15_000;

/** A line on standard error now and then. */
function progressTo(output: Output, { done }: BulkWords): (progress: BulkProgress) => void {
  let saidAt = systemClock.monotonic();
  let waitedFor = -1;
  return ({ changed, skipped, total, canary }) => {
    const now = systemClock.monotonic();
    if (canary !== null) {
      const isNews = canary.ended !== waitedFor;
      if (!isNews && now - saidAt < WAITED_EVERY_MS) return;
      const hint = isNews ? '' : ' Still waiting: mulligan workers list shows who could run them.';
      output.note(`canary: ${canary.ended} of ${canary.jobs} have ended.${hint}`);
      waitedFor = canary.ended;
      saidAt = now;
      return;
    }
    if (total.count === 0 || now - saidAt < SAID_EVERY_MS) return;
    saidAt = now;
    output.note(`${number(changed + skipped)} of ${total.isExact ? '' : 'at least '}${number(total.count)} ${done}.`);
  };
}

/** As the API takes it, which checks it. */
export function readRate(rate: string | undefined): { readonly rate?: Rate } {
  return given('rate', rate as Rate | undefined);
}
