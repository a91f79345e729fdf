import { checkOneOf } from '../config.ts';
import { isTerminal, type Job, type JobState, states } from '../job.ts';
import type { Mulligan } from '../mulligan.ts';
import type { GateInfo } from '../observe/gate-info.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { Failure } from './failure.ts';
import { given, read, readInteger } from './flags.ts';
import { jobFacts, stackLines } from './job-facts.ts';
import { jobListLines, pageNote } from './job-list.ts';
import { ledgerLines } from './ledger.ts';
import { printable } from './printable.ts';

const PAGE = 50;
const LARGEST_PAGE = 10_000;
/** Each takes a few queries; jobs behind more than these are listed without their gate. */
const MOST_GATES = 100;

interface ListFlags {
  readonly state?: string;
  readonly queue?: string;
  readonly name?: string;
  readonly key?: string;
  readonly limit?: string;
  readonly after?: string;
}

export function addJobs(program: CliCommand, shell: Shell): void {
  const jobs = program.command('jobs').description('Look at jobs, and cancel them.');
  jobs
    .command('list')
    .description('Jobs, newest first.')
    .option('--state <state>', `one of ${states.join(', ')}`)
    .option('--queue <queue>', 'only of this queue')
    .option('--name <name>', 'only of this name')
    .option('--key <key>', 'only with this key')
    .option('--limit <n>', `how many (default: ${PAGE})`)
    .option('--after <id>', 'continue after this job, the last one of the page before')
    .addHelpText('after', '\nWith --json: { jobs: [...] }, times in ms since the epoch.')
    .action((flags: ListFlags) => list(shell, flags));
  jobs
    .command('show')
    .description('One job: its facts, and its ledger of all finished runs.')
    .argument('<id>', "the job's id")
    .addHelpText(
      'after',
      '\nWith --json: { job, runs: [...], gate }, times in ms since the epoch; gate is null when the job has ended.',
    )
    .action((id: string) => show(shell, id));
  jobs
    .command('cancel')
    .description('Cancel jobs: waiting ones at once, running ones within a heartbeat.')
    .argument('<ids...>', 'the ids of jobs')
    .addHelpText('after', '\nWith --json: { results: [{ id, result }] }. Exit code 1 when one could not be cancelled.')
    .action((ids: string[]) => cancel(shell, ids));
}

async function list({ output, ...shell }: Shell, flags: ListFlags): Promise<void> {
  const limit = readLimit(flags.limit) ?? PAGE;
  const filter = {
    ...read('state', flags.state, (text): JobState => checkOneOf(text, states, '--state')),
    ...given('queue', flags.queue),
    ...given('name', flags.name),
    ...given('key', flags.key),
    ...given('after', flags.after),
    limit,
  };
  const { found, gates } = await withExisting(shell.database(), async (mulligan) => {
    const jobs = await mulligan.jobs.list(filter);
    return { found: jobs, gates: await gatesOf(mulligan, jobs) };
  });
  output.answer({ jobs: found }, () => (found.length === 0 ? ['No job matches.'] : jobListLines(found, output, gates)));
  const note = pageNote(found, limit);
  if (note !== null) output.note(note);
}

export function readLimit(text: string | undefined): number | undefined {
  return text === undefined ? undefined : readInteger(text, '--limit', { min: 1, max: LARGEST_PAGE });
}

async function show({ output, ...shell }: Shell, id: string): Promise<void> {
  const { job, runs, gate } = await withExisting(shell.database(), async (mulligan) => {
    const found = await mulligan.jobs.get(id);
    return {
      job: found,
      runs: await mulligan.jobs.runs(id),
      gate: found === null || isTerminal(found.state) ? null : await gateOf(mulligan, found),
    };
  });
  if (job === null) {
    throw new Failure('NOT_FOUND', `there is no job ${JSON.stringify(id)}. See mulligan jobs list for what there is.`);
  }
  output.answer({ job, runs, gate }, () => [
    ...jobFacts(job, gate, output),
    '',
    ...(runs.length === 0 ? ['No run has finished yet.'] : ledgerLines(runs, output)),
    ...stackLines(job, output),
  ]);
}

/** The gates of resources that jobs of a page wait behind. */
async function gatesOf({ gates }: Mulligan, jobs: readonly Job[]): Promise<Map<string, GateInfo>> {
  const waiting = jobs.filter(({ state }) => !isTerminal(state) && state !== 'running');
  const resources = [...new Set(waiting.flatMap(({ resource }) => resource ?? []))].slice(0, MOST_GATES);
  const shown = await Promise.all(resources.map((name) => gates.show(name, { kind: 'resource' })));
  return new Map(shown.map(({ gate }) => [gate.name, gate]));
}

/** The gate it waits behind, or the soft one of its name. */
async function gateOf({ gates }: Mulligan, { resource, name }: Job): Promise<GateInfo> {
  const shown = resource === null ? gates.show(name, { kind: 'job' }) : gates.show(resource, { kind: 'resource' });
  return (await shown).gate;
}

const cancelWords = {
  cancelled: 'cancelled',
  cancelling: 'is running; its worker stops it at the next heartbeat',
  'already-ended': 'had already ended',
  'not-found': 'does not exist',
} as const;

async function cancel(shell: Shell, ids: readonly string[]): Promise<void> {
  const results = await withExisting(shell.database(), (mulligan: Mulligan) =>
    Promise.all(ids.map(async (id) => ({ id, result: await mulligan.jobs.cancel(id) }))),
  );
  shell.output.answer({ results }, () => results.map(({ id, result }) => `${printable(id)} ${cancelWords[result]}.`));
  const done = results.every(({ result }) => result === 'cancelled' || result === 'cancelling');
  if (!done) shell.exitCode = 1;
}
