import { systemClock } from '../clock.ts';
import { policies } from '../retry/presets.ts';
import { resolvePolicy } from '../retry/resolve.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { CliCommand, Shell } from './command.ts';
import { readInteger } from './flags.ts';
import { addAdvise } from './policy/advise.ts';
import { choosePolicy, type PolicyFlags, presetNames } from './policy/choose.ts';
import { forecast, totalsOf } from './policy/forecast.ts';
import { type LikelyTotals, likelyTotals } from './policy/likely.ts';
import { previewLines } from './policy/preview.ts';
import { type WorkerFlags, warningLines, warningsOf } from './policy/warnings.ts';
import { backoffWords, explainLines, jitterName, likelyWords } from './policy/words.ts';
import { tableLines } from './table.ts';
import { span } from './time.ts';

const MOST_DELAYS = 1_000;
const LARGEST_SEED = 2 ** 32 - 1;

type ExplainFlags = PolicyFlags & WorkerFlags;
type PreviewFlags = PolicyFlags & { readonly attempts?: string; readonly seed?: string };

export function addPolicy(program: CliCommand, shell: Shell): void {
  const policy = program.command('policy').description('Show retry policies, and what the ledger says about them.');
  policy
    .command('list')
    .description('The presets.')
    .addHelpText('after', '\nWith --json: { presets: [{ preset, policy, delaysMs, totalMs, likelyTotalMs }] }.')
    .action(() => list(shell));
  choosing(policy.command('preview').description('The delays of a policy, as a table and a plot.'))
    .option('--attempts <n>', 'show the delays after n failed attempts, so n delays (default: all the policy has)')
    .option('--seed <n>', 'draw the same sample of jitter again')
    .addHelpText('after', PREVIEW_HELP)
    .action((flags: PreviewFlags) => preview(shell, flags));
  choosing(policy.command('explain').description('What a policy will do, in words, and what is wrong with it.'))
    .option('--concurrency <n>', 'check it for so many jobs at once, over all workers (default: 10)')
    .option('--lease <duration>', 'check it for workers with this lease (default: 30s)')
    .addHelpText('after', EXPLAIN_HELP)
    .action((flags: ExplainFlags) => explain(shell, flags));
  addAdvise(policy, shell);
}

const PREVIEW_HELP = `
--attempts n says how many attempts fail, each with a delay after it: --attempts 7 shows 7 delays, even when the
policy gives up sooner. --max-attempts changes the policy itself: 8 attempts have 7 delays between them.

With --json: { delaysMs (before jitter), rangesMs ([shortest, longest] with jitter), sampleMs (one draw), seed,
totalMs, shortestTotalMs, longestTotalMs, likelyTotalMs ([from, to] for 98 of 100 jobs), preset, policy }.`;

const EXPLAIN_HELP = `
Warnings are what a worker logs when it starts. silence: ['NAME'] in the definition turns one off.

With --json: { preset, policy, delaysMs, totalMs, shortestTotalMs, longestTotalMs, likelyTotalMs,
warnings: [{ name, problem, advice }], text }.`;

function choosing(command: CliCommand): CliCommand {
  return command
    .option('--jobs <file>', 'a module with definitions: show the policy of one of them')
    .option('--name <name>', 'the name of that definition')
    .option('--preset <name>', `one of ${presetNames.join(', ')} (default: standard)`)
    .option('--backoff <kind>', 'exponential, linear, fixed, fibonacci or table')
    .option('--base <duration>', 'the first delay')
    .option('--factor <n>', 'what an exponential delay grows by')
    .option('--max <duration>', 'the longest delay')
    .option('--delays <durations>', 'the delays of a table: 1s,5s,1m')
    .option('--jitter <kind>', 'none, full, equal, decorrelated or spread:0.2')
    .option('--max-attempts <n>', 'attempts in total, the first included')
    .option('--deadline <duration>', 'give up this long after the first run started');
}

function list({ output }: Shell): void {
  const presets = presetNames.map((preset) => {
    const { policy } = resolvePolicy({ definition: policies[preset] });
    const waits = forecast(policy, policy.maxAttempts - 1, () => 0);
    const likely = likelyTotals(policy, waits.length);
    const delaysMs = waits.map(({ delayMs }) => delayMs);
    return { preset, policy, delaysMs, totalMs: totalsOf(waits).totalMs, likelyTotalMs: rangeOf(likely) };
  });
  output.answer({ presets }, () => [
    ...tableLines(
      [
        { title: 'preset' },
        { title: 'attempts', align: 'right' },
        { title: 'backoff', gives: 'shortened' },
        { title: 'jitter' },
        { title: 'waits in all', align: 'right' },
        { title: 'with jitter', align: 'right' },
      ],
      presets.map(({ preset, policy, totalMs, likelyTotalMs: [soonestMs, latestMs] }) =>
        policy.maxAttempts === 1
          ? [preset, 1, 'never retried', '-', '-', '-']
          : [
              preset,
              policy.maxAttempts,
              backoffWords(policy.backoff),
              jitterName(policy.jitter),
              span(totalMs),
              likelyWords({ soonestMs, latestMs }),
            ],
      ),
      output,
    ),
    '',
    'Attempts count the first one too. The waits are added up before jitter, and with it for 98 of 100 jobs that fail every time.',
    'See mulligan policy preview --preset NAME and mulligan policy explain --preset NAME.',
  ]);
}

async function preview({ output }: Shell, flags: PreviewFlags): Promise<void> {
  const { preset, policy } = await choosePolicy(flags);
  const count =
    flags.attempts === undefined
      ? Math.min(MOST_DELAYS, policy.maxAttempts - 1)
      : readInteger(flags.attempts, '--attempts', { min: 1, max: MOST_DELAYS });
  const seed = readSeed(flags.seed);
  const chance = new VirtualClock({ seed });
  const waits = forecast(policy, count, () => chance.random());
  const answer = {
    delaysMs: waits.map(({ delayMs }) => delayMs),
    rangesMs: waits.map(({ minMs, maxMs }) => [minMs, maxMs]),
    sampleMs: waits.map(({ sampleMs }) => sampleMs),
    seed,
    ...totalsOf(waits),
    likelyTotalMs: rangeOf(likelyTotals(policy, waits.length)),
    preset,
    policy,
  };
  output.answer(answer, () => previewLines(preset, policy, waits, seed, output));
}

function readSeed(text: string | undefined): number {
  if (text !== undefined) return readInteger(text, '--seed', { min: 0, max: LARGEST_SEED });
  return Math.floor(systemClock.random() * 1_000_000);
}

async function explain({ output }: Shell, flags: ExplainFlags): Promise<void> {
  const { preset, policy, definition } = await choosePolicy(flags);
  const waits = forecast(policy, Math.min(MOST_DELAYS, policy.maxAttempts - 1), () => 0);
  const warnings = warningsOf(policy, definition, flags);
  const text = [...explainLines(preset, policy, waits), ...warningLines(warnings)];
  const delaysMs = waits.map(({ delayMs }) => delayMs);
  const likelyTotalMs = rangeOf(likelyTotals(policy, waits.length));
  const answer = { preset, policy, delaysMs, ...totalsOf(waits), likelyTotalMs, warnings, text: text.join('\n') };
  output.answer(answer, () => text);
}

function rangeOf({ soonestMs, latestMs }: LikelyTotals): [number, number] {
  return [soonestMs, latestMs];
}
