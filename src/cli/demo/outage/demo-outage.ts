import { Failure } from '../../failure.ts';
import { readInteger } from '../../flags.ts';
import type { Output } from '../../output.ts';
import { type Afterwards, withTemporaryFolder } from '../temporary-folder.ts';
import { databaseOf, runOutage } from './run-outage.ts';
import { summaryLines, unexpected } from './summary.ts';
import { makeOutageView } from './view.ts';

export const OUTAGE_SECONDS = 20;
const BOUNDS = { min: 3, max: 120 };

/** `mulligan demo --outage`: the same jobs through the same outage, with a gate and without. */
export async function demoOutage(output: Output, flag: true | string, afterwards: Afterwards): Promise<void> {
  const seconds = flag === true ? OUTAGE_SECONDS : readInteger(flag, '--outage', BOUNDS);
  await withTemporaryFolder(afterwards, async (folder, interrupted) => {
    output.lines(introduction(seconds, output));
    const summary = await runOutage(folder, seconds * 1_000, makeOutageView(output), interrupted);
    if (summary === null) return output.note('Interrupted.');
    output.answer(summary, () => [...summaryLines(summary, output), ...nextSteps(folder, afterwards)]);
    const wrong = unexpected(summary);
    if (wrong.length > 0) throw new Failure('NOT_DONE', `the demo did not go as planned: ${wrong.join('; ')}.`);
  });
}

function introduction(seconds: number, output: Output): string[] {
  return [
    output.paint('bold', `An HTTP service on this machine is switched off for ${seconds} seconds while jobs arrive.`),
    'Two queues get the same jobs, with the standard policy (4 attempts); each has its own temporary file and two workers.',
    "The jobs on the left say `resource: false`: every failure counts. Those on the right say `resource: 'service'`.",
    '',
  ];
}

function nextSteps(folder: string, afterwards: Afterwards): string[] {
  if (afterwards === 'keep') {
    return [
      'The databases were kept. Explore them:',
      `  mulligan gates show service --db ${databaseOf(folder, 'gated')}`,
      `  mulligan dead list --db ${databaseOf(folder, 'ungated')}`,
    ];
  }
  return [
    'The temporary files were removed; demo --outage --keep keeps them. See docs/outages.md for the person on call.',
  ];
}
