import {
  type Advice,
  type AdviseOptions,
  policiesToTry,
  scenarioOf,
  type Worse,
  withdraw,
  worseInReplay,
} from '../../advise/index.ts';
import { type SimulationResult, simulate } from '../../simulate/index.ts';
import type { CliCommand, Shell } from '../command.ts';
import { withExisting } from '../database.ts';
import { given, read, readNumber } from '../flags.ts';
import type { Output } from '../output.ts';
import { simulationLines } from '../simulate/lines.ts';
import { adviceLines } from './advice-lines.ts';

interface AdviseFlags {
  readonly name?: string;
  readonly days?: string;
  readonly simulate?: true;
}

const HELP = `
Reads ended jobs only. Of more than 20,000 it draws a part, of at most 50,000, and says how sure each figure is.
It never changes anything, and takes no lock that a worker waits for.

--simulate replays the longest outage of each name that has proposals: real workers and gates on a virtual clock, with the
present policy, the proposed one and a proposed gate side by side. A proposal whose replay is worse is withdrawn.

With --json: { now, since, isPruned, oldestAt, read, jobs, isSampled, names: [{ name, jobs, failed, policy, retries, attempts,
groups, proposals: [{ setting, maxAttempts, backoff, rule, runsSaved, runMsSaved, jobsLost, jobsLostAtMost, jobsGained, text,
withdrawn }], choices, outage, tooFew, tooSmall }], simulations: [{ name, result, worse }] }, simulations only with --simulate.`;

export function addAdvise(policy: CliCommand, shell: Shell): void {
  policy
    .command('advise')
    .description(
      'What the ledger says about the policies of its jobs: which attempts succeed, what retries cost, what to change.',
    )
    .option('--name <name>', 'only jobs of this name')
    .option('--days <n>', 'how far back to look (default: 30)')
    .option('--simulate', 'replay the longest outage of the ledger with what is proposed')
    .addHelpText('after', HELP)
    .action((flags: AdviseFlags) => advise(shell, flags));
}

async function advise({ output, ...shell }: Shell, flags: AdviseFlags): Promise<void> {
  const options: AdviseOptions = {
    ...given('name', flags.name),
    ...read('days', flags.days, (text) => readNumber(text, '--days', { min: 0.001, max: 3_650 })),
  };
  const advice = await withExisting(shell.database(), (mulligan) => mulligan.advise(options));
  if (flags.simulate === undefined) {
    output.answer(advice, () => adviceLines(advice, output));
    return;
  }
  const simulations = await replay(advice, output);
  const worse = new Map(simulations.map((one) => [one.name, one.worse]));
  const names = advice.names.map((one) => withdraw(one, worse.get(one.name) ?? []));
  output.answer({ ...advice, names, simulations }, () => [
    ...adviceLines({ ...advice, names }, output),
    ...replayLines(simulations, output),
  ]);
}

interface Replay {
  readonly name: string;
  readonly result: SimulationResult;
  readonly worse: readonly Worse[];
}

async function replay({ names }: Advice, output: Output): Promise<Replay[]> {
  const replays: Replay[] = [];
  for (const advice of names) {
    const policies = policiesToTry(advice);
    if (policies === null || advice.outage === null) continue;
    const scenario = scenarioOf(advice.name, advice.outage);
    const onProgress = ({ policy, done }: { readonly policy: string; readonly done: number }): void =>
      output.progress(`simulating the ${policy} policy of ${advice.name} ... ${Math.floor(done * 100)} %`);
    const result = await simulate(scenario, { policies, onProgress }).finally(() => output.progress(''));
    replays.push({ name: advice.name, result, worse: worseInReplay(result) });
  }
  return replays;
}

function replayLines(replays: readonly Replay[], output: Output): string[] {
  if (replays.length === 0)
    return ['', 'Nothing to simulate: no name has both an outage and a proposal for its policy.'];
  return replays.flatMap(({ result, worse }) => [
    '',
    ...simulationLines(result, output),
    ...worse.flatMap(({ policy, why }) => [
      '',
      `Worse than the present policy (${policy}): ${why}. The proposal is withdrawn.`,
    ]),
  ]);
}
