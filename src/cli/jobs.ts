import type { OrderOptions } from '../audit.ts';
import type { Selection } from '../bulk/selection.ts';
import { isGateName } from '../gates.ts';
import { isTerminal, type Job } from '../job.ts';
import type { Mulligan } from '../mulligan.ts';
import type { GateInfo } from '../observe/gate-info.ts';
import { printable } from '../printable.ts';
import type { CancelAnswer } from '../store/store.ts';
import { askingOption, BULK_JSON, type BulkFlags, bulk, bulkOptions, rateOption, readRate } from './bulk.ts';
import { number } from './bulk-lines.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { wrongUsage } from './failure.ts';
import { given } from './flags.ts';
import { jobFacts, stackLines } from './job-facts.ts';
import { jobListLines, pageNote } from './job-list.ts';
import { ledgerLines } from './ledger.ts';
import { logLines, shortLogLines } from './log-lines.ts';
import { isEmpty, readFlags, type SelectionFlags, selecting } from './selection.ts';
import { waitReasons } from './waits.ts';
import { findOne, hintAtNothing, readAfter, wholeIds, withWholeIds } from './which-jobs.ts';

export const PAGE = 50;
/** Each takes a few queries; jobs behind more than these are listed without their gate. */
const MOST_GATES = 100;

interface ShowFlags {
  readonly logs?: true;
}

type ListFlags = SelectionFlags & { readonly after?: string };

export function addJobs(program: CliCommand, shell: Shell): void {
  const jobs = program.command('jobs').description('Look at jobs, run them now, and cancel them.');
  selecting(jobs.command('list').description('Jobs, newest first.'), 'any', `how many (default: ${PAGE})`)
    .option('--after <id>', 'continue after this job, the last one of the page before')
    .addHelpText('after', '\nWith --json: { jobs: [...] }, times in ms since the epoch.')
    .action((flags: ListFlags) => list(shell, flags));
  selecting(jobs.command('count').description('How many jobs match.'), 'any')
    .addHelpText(
      'after',
      '\nWith --json: { count, isExact }. Counting stops at 1,000,000, or by --message after 100,000 jobs.',
    )
    .action((flags: SelectionFlags) => count(shell, flags));
  jobs
    .command('show')
    .description('One job: its facts, why it waits, its ledger of all finished runs, and what the last one logged.')
    .argument('<id>', "the job's id, or how it begins")
    .option('--logs', 'all that is kept of what its last 50 runs logged')
    .addHelpText(
      'after',
      '\nWith --json: { job, runs: [...], gate, waits: [...], logs: [...] }, times in ms since the epoch; gate is null when the job has ended.\nlogs: [{ run, lines: [{ level, at, message, fields }], dropped }], newest run first.',
    )
    .action((id: string, flags: ShowFlags) => show(shell, id, flags));
  const cancelling = selecting(
    jobs
      .command('cancel')
      .description('Cancel jobs: waiting ones at once; running ones are asked to stop, within a second.')
      .argument('[ids...]', 'the ids of jobs; or choose them by options, which add up'),
    'any',
  );
  askingOption(bulkOptions(cancelling))
    .addHelpText(
      'after',
      `\nWith ids alone it does not ask. With --json, of ids alone: { results: [{ id, result }] }; exit code 1 when one could not
be cancelled.${BULK_JSON}`,
    )
    .action((ids: string[], flags: SelectionFlags & BulkFlags) => cancel(shell, ids, flags));
  const running = selecting(
    jobs
      .command('run-now')
      .description(
        'Let scheduled and retrying jobs start now; of running ones the next wait ends at once. They keep their history and attempts.',
      )
      .argument('[ids...]', 'the ids of jobs; or choose them by options, which add up'),
    'any',
  );
  rateOption(bulkOptions(running))
    .addHelpText('after', BULK_JSON)
    .action((ids: string[], flags: SelectionFlags & BulkFlags & { rate?: string }) => runNow(shell, ids, flags));
  selecting(jobs.command('export').description('Print jobs as JSON, one per line.'), 'any').action(
    (flags: SelectionFlags) =>
      exportLines(shell, readFlags(flags), (mulligan, selection) => mulligan.jobs.export(selection)),
  );
}

async function list({ output, ...shell }: Shell, flags: ListFlags): Promise<void> {
  const selection = readFlags(flags);
  const limit = selection.limit ?? PAGE;
  const { found, gates, hint } = await withExisting(shell.database(), async (mulligan) => {
    const chosenJobs = await withWholeIds(mulligan, selection);
    const jobs = await mulligan.jobs.list({ ...chosenJobs, ...(await readAfter(mulligan, flags.after)), limit });
    const advice = jobs.length === 0 ? await hintAtNothing(mulligan, selection) : null;
    return { found: jobs, gates: await gatesOf(mulligan, jobs), hint: advice };
  });
  output.answer({ jobs: found }, () => (found.length === 0 ? ['No job matches.'] : jobListLines(found, output, gates)));
  const note = hint ?? pageNote(found, limit);
  if (note !== null) output.note(note);
}

async function count({ output, ...shell }: Shell, flags: SelectionFlags): Promise<void> {
  const selection = readFlags(flags);
  const { counted, hint } = await withExisting(shell.database(), async (mulligan) => {
    const found = await mulligan.jobs.count(await withWholeIds(mulligan, selection));
    return { counted: found, hint: found.count === 0 ? await hintAtNothing(mulligan, selection) : null };
  });
  // Digits alone for a script that compares them.
  const digits = output.isTerminal ? number(counted.count) : String(counted.count);
  output.answer(counted, () => [`${counted.isExact ? '' : 'at least '}${digits}`]);
  if (hint !== null) output.note(hint);
}

/** One JSON object per line, whether or not --json was given. */
export async function exportLines(
  { output, ...shell }: Shell,
  selection: Selection,
  read: (mulligan: Mulligan, selection: Selection) => AsyncIterable<Job>,
): Promise<void> {
  const hint = await withExisting(shell.database(), async (mulligan) => {
    let isEmpty = true;
    for await (const job of read(mulligan, await withWholeIds(mulligan, selection))) {
      output.line(job);
      isEmpty = false;
    }
    return isEmpty ? ((await hintAtNothing(mulligan, selection)) ?? 'No job matches.') : null;
  });
  if (hint !== null) output.note(hint);
}

async function show({ output, ...shell }: Shell, id: string, flags: ShowFlags): Promise<void> {
  const { job, runs, gate, waits, logs } = await withExisting(shell.database(), async (mulligan) => {
    const found = await findOne(mulligan, id);
    const ledger = await mulligan.jobs.runs(found.id);
    return {
      job: found,
      runs: ledger,
      gate: isTerminal(found.state) ? null : await gateOf(mulligan, found),
      waits: await waitReasons(mulligan, found, ledger),
      logs: await mulligan.jobs.logs(found.id),
    };
  });
  output.answer({ job, runs, gate, waits, logs }, () => [
    ...jobFacts(job, gate, output),
    ...waits.map((reason) => `${output.paint('dim', 'waits: ')}${printable(reason)}`),
    '',
    ...(runs.length === 0 ? ['No run has finished yet.'] : ledgerLines(runs, output)),
    ...stackLines(job, output),
    ...(flags.logs === true ? logLines(logs, output) : shortLogLines(logs, output)),
  ]);
}

/** The gates of resources that jobs of a page wait behind. */
async function gatesOf({ gates }: Mulligan, jobs: readonly Job[]): Promise<Map<string, GateInfo>> {
  const waiting = jobs.filter(({ state }) => !isTerminal(state) && state !== 'running');
  const resources = [...new Set(waiting.flatMap(({ resource }) => resource ?? []))]
    .filter(isGateName)
    .slice(0, MOST_GATES);
  const shown = await Promise.all(resources.map((name) => gates.show(name, { kind: 'resource' })));
  return new Map(shown.map(({ gate }) => [gate.name, gate]));
}

/** The gate it waits behind, or the soft one of its name; null where no gate can have that name. */
async function gateOf({ gates }: Mulligan, { resource, name }: Job): Promise<GateInfo | null> {
  if (!isGateName(resource ?? name)) return null;
  const shown = resource === null ? gates.show(name, { kind: 'job' }) : gates.show(resource, { kind: 'resource' });
  return (await shown).gate;
}

const cancelWords = {
  cancelled: 'cancelled',
  cancelling: 'is running; its worker is told to stop it',
  'already-ended': 'had already ended',
  'not-found': 'does not exist',
} as const;

async function cancel(shell: Shell, ids: readonly string[], flags: SelectionFlags & BulkFlags): Promise<void> {
  const selection = chosen(ids, flags);
  const isByIds = Object.keys(selection).every((name) => name === 'ids');
  if (isByIds && flags.dryRun !== true) return cancelEach(shell, selection.ids ?? [], given('by', flags.by));
  const words = { verb: 'cancel', done: 'cancelled', what: 'jobs', asks: true };
  await bulk(shell, flags, words, selection, (mulligan, how) => mulligan.jobs.cancel({ ...selection, ...how }));
}

/** One action in the audit, however many ids there are. */
async function cancelEach(shell: Shell, ids: readonly string[], by: OrderOptions): Promise<void> {
  const results = await withExisting(shell.database(), async (mulligan: Mulligan) => {
    const whole = await wholeIds(mulligan, ids);
    const { ids: cancelled } = await mulligan.jobs.cancel({ ids: whole, ...by });
    return Promise.all(
      whole.map(async (id) => ({ id, result: resultOf(await mulligan.jobs.get(id), cancelled.includes(id)) })),
    );
  });
  shell.output.answer({ results }, () => results.map(({ id, result }) => `${printable(id)} ${cancelWords[result]}.`));
  const done = results.every(({ result }) => result === 'cancelled' || result === 'cancelling');
  if (!done) shell.exitCode = 1;
}

/** A job that was cancelled before and still runs is left out by the action, but is on its way as well. */
function resultOf(job: Job | null, isChanged: boolean): CancelAnswer['result'] {
  if (job === null) return 'not-found';
  if (isChanged) return job.state === 'cancelled' ? 'cancelled' : 'cancelling';
  return isTerminal(job.state) ? 'already-ended' : 'cancelling';
}

async function runNow(
  shell: Shell,
  ids: readonly string[],
  flags: SelectionFlags & BulkFlags & { readonly rate?: string },
): Promise<void> {
  const selection = chosen(ids, flags);
  const options = { ...selection, ...readRate(flags.rate) };
  const words = {
    verb: 'run now',
    done: 'due now:',
    what: 'jobs',
    asks: false,
    rate: flags.rate,
    rateNote: '; those that are due before their turn stay as they are',
  };
  await bulk(shell, flags, words, selection, (mulligan, how) => mulligan.jobs.runNow({ ...options, ...how }));
}

function chosen(ids: readonly string[], flags: SelectionFlags): Selection {
  const selection = readFlags(flags, ids);
  if (!isEmpty(selection)) return selection;
  throw wrongUsage(
    'expected which jobs: their ids, --name, --state, --error or another option. See mulligan jobs list.',
  );
}
