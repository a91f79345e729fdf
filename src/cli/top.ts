import { systemClock } from '../clock.ts';
import type { CliCommand, Shell } from './command.ts';
import { shownName, withExisting } from './database.ts';
import { wrongUsage } from './failure.ts';
import { readDuration } from './flags.ts';
import { watch } from './top/loop.ts';
import { TopReader } from './top/snapshot.ts';
import { headingOf, topLines } from './top/view.ts';

const DEFAULT_INTERVAL = '1s';
const SHORTEST_INTERVAL_MS = 100;

interface TopFlags {
  readonly interval: string;
  readonly once?: true;
}

export function addTop(program: CliCommand, shell: Shell): void {
  program
    .command('top')
    .description('Watch queues, gates, limits, failures and workers in the terminal.')
    .option('--interval <duration>', 'how often it is read again', DEFAULT_INTERVAL)
    .option('--once', 'print one frame and end, as without a terminal')
    .addHelpText(
      'after',
      `
Keys: q quits, p pauses and goes on. Rates are those since the reading before, so one frame alone has none.
Where a reading takes long, because very many jobs wait, the pause after it is nine times as long.
With --json: one frame as { at, queues, gates, limits, errors, workers }, times in ms since the epoch.

Examples:
  mulligan top
  mulligan top --interval 5s
  mulligan top --once`,
    )
    .action((flags: TopFlags) => top(shell, flags));
}

async function top({ output, ...shell }: Shell, { interval, once }: TopFlags): Promise<void> {
  const intervalMs = readDuration(interval, '--interval');
  if (intervalMs < SHORTEST_INTERVAL_MS) {
    throw wrongUsage(`--interval: expected at least ${SHORTEST_INTERVAL_MS}ms, got ${interval}.`);
  }
  const database = shell.database();
  await withExisting(database, async (mulligan) => {
    const reader = new TopReader(mulligan, systemClock);
    const name = shownName(database);
    if (output.isTerminal && !output.isJson && once !== true) {
      return watch({ reader, output, clock: systemClock, keys: process.stdin, intervalMs, database: name });
    }
    const snapshot = await reader.read();
    const heading = headingOf(name, snapshot, { keys: '', failure: null });
    output.answer(snapshot, () => topLines(snapshot, heading, output));
  });
}
