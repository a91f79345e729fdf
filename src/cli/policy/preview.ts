import type { RetryPolicy } from '../../retry/policy.ts';
import type { Output } from '../output.ts';
import { plotBars } from '../plot.ts';
import { tableLines } from '../table.ts';
import { span } from '../time.ts';
import { totalsOf, type Wait } from './forecast.ts';
import { likelyTotals } from './likely.ts';
import { likelyWords, policySummary } from './words.ts';

const WIDEST_PLOT = 50;
/** What the columns beside the plot take, at most. */
const TABLE_WIDTH = 62;

/** The waits as a table, with the plot as its last column. */
export function previewLines(
  name: string,
  policy: RetryPolicy,
  waits: readonly Wait[],
  seed: number,
  output: Output,
): string[] {
  const title = output.paint('bold', `${name}: ${policySummary(policy)}`);
  if (waits.length === 0) return [title];
  const hasJitter = policy.jitter !== 'none';
  const bars = plotBars(waits, Math.max(10, Math.min(WIDEST_PLOT, output.columns - TABLE_WIDTH)));
  let elapsedMs = 0;
  const rows = waits.map((wait, index) => {
    elapsedMs += wait.delayMs;
    const jittered = hasJitter ? [`${span(wait.minMs)} .. ${span(wait.maxMs)}`, span(wait.sampleMs)] : [];
    const bar = { text: bars[index] as string, style: 'cyan' as const };
    return [wait.afterAttempt, span(wait.delayMs), span(elapsedMs), ...jittered, bar];
  });
  const columns = ['after attempt', 'delay', 'in all', ...(hasJitter ? ['with jitter', 'sample'] : [])];
  const table = tableLines(
    [...columns.map((text) => ({ title: text, align: 'right' as const })), { title: '' }],
    rows,
    output,
  );
  return [title, '', ...table, '', ...legend(policy, waits, seed)];
}

function legend(policy: RetryPolicy, waits: readonly Wait[], seed: number): string[] {
  const { jitter, maxAttempts } = policy;
  const likely = likelyTotals(policy, waits.length);
  const { totalMs, shortestTotalMs, longestTotalMs } = totalsOf(waits);
  const beyond = waits.length - (maxAttempts - 1);
  return [
    ...(jitter === 'none'
      ? [`Waits in all: ${span(totalMs)}.`]
      : [
          `█ certain   ░ where jitter may end the wait   ● this sample (--seed ${seed} draws it again)`,
          `Waits in all: ${span(totalMs)} before jitter, ${span(shortestTotalMs)} to ${span(longestTotalMs)} with it.`,
          `98 of 100 jobs that fail every time wait ${likelyWords(likely)} in all.`,
        ]),
    ...(beyond > 0
      ? [
          `The policy itself gives up after attempt ${maxAttempts}; the delays from there on are what it would go on with.`,
        ]
      : []),
  ];
}
