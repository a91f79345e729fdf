import { CommanderError } from 'commander';
import { packageVersion } from '../version.ts';
import { addAudit } from './audit.ts';
import { addBackup } from './backup.ts';
import { CliCommand, HELP, makeShell, type Shell } from './command.ts';
import { addCompletion } from './completion.ts';
import { DEFAULT_DATABASE, KINDS } from './database.ts';
import { addDead } from './dead.ts';
import { addDemo } from './demo.ts';
import { addDoctor } from './doctor.ts';
import { addEnqueue } from './enqueue.ts';
import { addErrors } from './errors.ts';
import { type ExitCode, reportOf } from './failure.ts';
import { addForecast } from './forecast.ts';
import { addGates } from './gates.ts';
import { addJobs } from './jobs.ts';
import { addLimits } from './limits.ts';
import { addMigrate } from './migrate.ts';
import { Output } from './output.ts';
import { addPolicy } from './policy.ts';
import { addQueues } from './queues.ts';
import { addRetention } from './retention.ts';
import { addSchedules } from './schedules.ts';
import { addServe } from './serve.ts';
import { addSimulate } from './simulate.ts';
import { addStats } from './stats.ts';
import { addToken } from './token.ts';
import { addTop } from './top.ts';
import { addWork } from './work.ts';
import { addWorkers } from './workers.ts';

/** Runs one command line and returns the exit code. Never rejects. */
export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<ExitCode> {
  // Searched for here: a command line that cannot be parsed must still be answered in the right format.
  const output = new Output(beforeDashes(args).includes('--json'));
  const program = new CliCommand('mulligan');
  const shell = makeShell(output, env, () => program.opts().db as string | undefined);
  build(program, shell);
  try {
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync(args, { from: 'user' });
    return shell.exitCode;
  } catch (error) {
    // What commander itself ends with here is a help or a version that was asked for, and printed.
    if (error instanceof CommanderError) return 0;
    const report = reportOf(error, env);
    output.failure(report);
    return report.exitCode;
  }
}

function beforeDashes(args: readonly string[]): readonly string[] {
  const dashes = args.indexOf('--');
  return dashes === -1 ? args : args.slice(0, dashes);
}

/** Adds all commands. */
export function build(program: CliCommand, shell: Shell): void {
  program
    .description('A durable job queue in which retrying is the product.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption(HELP.join(', '), 'print this help')
    .helpCommand('help [command]', 'Print the help of a command.')
    .option('--db <url>', `the database, ${KINDS} (default: MULLIGAN_DB, or ${DEFAULT_DATABASE})`)
    .option('--json', 'print JSON and nothing else')
    .configureHelp({ showGlobalOptions: true })
    .exitOverride()
    .addHelpText('after', EXAMPLES);
  addDemo(program, shell);
  addEnqueue(program, shell);
  addWork(program, shell);
  addJobs(program, shell);
  addDead(program, shell);
  addErrors(program, shell);
  addQueues(program, shell);
  addWorkers(program, shell);
  addAudit(program, shell);
  addGates(program, shell);
  addLimits(program, shell);
  addRetention(program, shell);
  addSchedules(program, shell);
  addStats(program, shell);
  addForecast(program, shell);
  addServe(program, shell);
  addToken(program, shell);
  addTop(program, shell);
  addMigrate(program, shell);
  addBackup(program, shell);
  addDoctor(program, shell);
  addPolicy(program, shell);
  addSimulate(program, shell);
  addCompletion(program, shell);
}

const EXAMPLES = `
Examples:
  mulligan demo
  mulligan enqueue email.send '{"to":"a@example.com"}' --delay 5m
  mulligan work --jobs jobs.ts
  mulligan jobs show 0198c0de-...
  mulligan errors list
  mulligan top
  mulligan gates show smtp
  mulligan limits set shopify --rate 90/10s
  mulligan schedules set nightly report.daily --cron '0 3 * * *' --timezone Europe/Berlin
  mulligan policy preview --preset financial
  mulligan simulate --scenario outage-10m --compare standard,patient,no-gate
  mulligan serve --db postgres://localhost/app

Durations are 500ms, 30s, 5m, 2h or 3d. Exit codes: 0 done, 1 could not be done, 2 wrong usage.
MULLIGAN_DEBUG=1 adds a stack trace to errors.`;
