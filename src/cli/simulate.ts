import { open, readFile, writeFile } from 'node:fs/promises';
import { closest } from '../config.ts';
import { printable } from '../printable.ts';
import {
  drawSimulation,
  policyNames,
  type Scenario,
  type SimulatedPolicy,
  scenarioNames,
  scenarios,
  simulate,
} from '../simulate/index.ts';
import { readPolicy } from '../simulate/policies.ts';
import { readScenario } from '../simulate/scenario.ts';
import type { CliCommand, Shell } from './command.ts';
import { Failure, wrongUsage } from './failure.ts';
import { readInteger } from './flags.ts';
import { simulationLines } from './simulate/lines.ts';

interface SimulateFlags {
  readonly scenario: string;
  readonly compare: string;
  readonly seed: string;
  readonly svg?: string;
}

const HELP = `
Scenarios:
${scenarioNames.map((name) => `  ${name.padEnd(16)} ${scenarios[name].description}`).join('\n')}

Policies: ${policyNames.join(', ')}.
The presets are behind the gate of a named resource; no-gate is standard with resource: false, soft-gate without a resource.

With --json: { scenario, seed, stepMs, runs: [{ policy, figures, series }] }. See docs/simulate.md.`;

export function addSimulate(program: CliCommand, shell: Shell): void {
  program
    .command('simulate')
    .description(
      'What policies make of an outage: real workers and gates, on a virtual clock, against a modelled dependency.',
    )
    .option('--scenario <name|file>', 'one of those below, or a JSON file', 'outage-10m')
    .option('--compare <policies>', 'policies to put side by side, or JSON files: standard,patient,no-gate', 'standard')
    .option('--seed <n>', 'the same seed gives the same figures', '1')
    .option('--svg <file>', 'draw it')
    .addHelpText('after', HELP)
    .action((flags: SimulateFlags) => run(shell, flags));
}

async function run({ output }: Shell, flags: SimulateFlags): Promise<void> {
  const seed = readInteger(flags.seed, '--seed', { min: 0, max: 2 ** 32 - 1 });
  const scenario = await chooseScenario(flags.scenario);
  const policies = await Promise.all(flags.compare.split(',').map((one) => choosePolicy(one.trim())));
  if (flags.svg !== undefined) await checkWritable(flags.svg);
  const result = await simulate(scenario, {
    policies,
    seed,
    onProgress: ({ policy, done }) =>
      output.progress(`simulating ${printable(policy)} ... ${Math.floor(done * 100)} %`),
  }).finally(() => output.progress(''));
  // The answer comes first: it must not be lost when the disk is full.
  output.answer(result, () => simulationLines(result, output));
  if (flags.svg !== undefined) await writeSvg(flags.svg, drawSimulation(result));
}

/** A name without a dot or a slash is not meant as a file. */
function isFile(text: string): boolean {
  return /[./\\]/.test(text);
}

async function chooseScenario(text: string): Promise<Scenario> {
  const preset = scenarioNames.find((name) => name === text);
  if (preset !== undefined) return scenarios[preset];
  if (!isFile(text))
    throw wrongUsage(
      `--scenario: expected one of ${scenarioNames.join(', ')}, or a JSON file, got ${text}.${meant(text, scenarioNames)}`,
    );
  const scenario = await readJsonFile(text, '--scenario');
  readScenario(scenario, text);
  return scenario as Scenario;
}

async function choosePolicy(text: string): Promise<string | SimulatedPolicy> {
  if (policyNames.includes(text)) return text;
  if (!isFile(text))
    throw wrongUsage(
      `--compare: expected ${policyNames.join(', ')}, or a JSON file, got ${text === '' ? 'nothing' : text}.${meant(text, policyNames)}`,
    );
  const policy = await readJsonFile(text, '--compare');
  readPolicy(policy, text);
  return policy as SimulatedPolicy;
}

function meant(text: string, names: readonly string[]): string {
  const name = closest(text, names);
  return name === null ? '' : ` Did you mean ${name}?`;
}

/** Before the simulation, which may take minutes. What the file holds stays until the picture is there. */
async function checkWritable(path: string): Promise<void> {
  const file = await open(path, 'a').catch((error: Error) => {
    throw wrongUsage(`--svg: expected a file that can be written, got ${path} (${error.message}).`);
  });
  await file.close();
}

async function writeSvg(path: string, svg: string): Promise<void> {
  await writeFile(path, svg).catch((error: Error) => {
    throw new Failure('NOT_DONE', `--svg: ${path} could not be written (${error.message}).`);
  });
}

async function readJsonFile(path: string, flag: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw wrongUsage(`${flag}: expected a file that can be read, got ${path} (${error.message}).`);
  });
  try {
    // Editors on Windows put a byte order mark first.
    return JSON.parse(text.replace(/^\ufeff/, ''));
  } catch (error) {
    throw wrongUsage(`${flag}: expected JSON in ${path}, but ${(error as Error).message}.`);
  }
}
