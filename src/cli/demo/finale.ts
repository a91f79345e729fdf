import type { Job, RunRecord } from '../../job.ts';
import type { Mulligan } from '../../mulligan.ts';
import type { Stats } from '../../observe/stats.ts';
import { ledgerLines, stateStyles } from '../ledger.ts';
import type { Output } from '../output.ts';
import { totalsLines } from '../stats.ts';
import { roles } from './jobs.ts';
import { titleOf } from './story.ts';

export interface Ending {
  readonly jobs: readonly { readonly job: Job; readonly runs: readonly RunRecord[] }[];
  readonly stats: Stats;
}

export async function readEnding(mulligan: Mulligan, jobs: readonly Job[]): Promise<Ending> {
  const [stats, ...ledgers] = await Promise.all([
    mulligan.stats(),
    ...jobs.map(async (job) => ({ job, runs: await mulligan.jobs.runs(job.id) })),
  ]);
  return { jobs: ledgers, stats };
}

/** One job of each of these is shown with its ledger. */
const telling: readonly { readonly name: string; readonly moral: string }[] = [
  { name: 'report.build', moral: 'Two failures, a wait after each, and then it went through.' },
  { name: 'sms.send', moral: 'The other side asked for a second; it got at least that.' },
  { name: 'card.charge', moral: 'All attempts are spent: it is dead, and kept for review.' },
  { name: 'invoice.import', moral: 'Retrying cannot help here, so no attempt was wasted on it.' },
  { name: 'image.decode', moral: 'It took its process down three times, and is buried instead of touring the fleet.' },
  {
    name: 'image.resize',
    moral: 'It only ran beside the killer: it was rescued from the dead process, and completed.',
  },
];

export function endingLines({ jobs, stats }: Ending, output: Output): string[] {
  const ledgers = telling.flatMap(({ name, moral }) => {
    const shown = jobs.find(({ job }) => job.name === name);
    if (shown === undefined) return [];
    const { job, runs } = shown;
    const state = output.paint(stateStyles[job.state], job.deadReason === null ? job.state : `dead: ${job.deadReason}`);
    return ['', `${output.paint('bold', titleOf(job))}  ${state}  ${moral}`, ...ledgerLines(runs, output)];
  });
  return [
    '',
    output.paint('bold', 'The ledgers of a few jobs: every start is on record, with what was decided and why.'),
    ...ledgers,
    '',
    output.paint('bold', 'Totals'),
    ...totalsLines(stats, output),
    '',
  ];
}

/** What did not end as its role says; the demo is a promise, so it checks itself. */
export function surprises({ jobs }: Ending): string[] {
  return roles.flatMap(({ definition, ends }) =>
    jobs
      .filter(({ job }) => job.name === definition.name && (job.deadReason ?? job.state) !== ends)
      .map(({ job }) => `${titleOf(job)} ended ${job.deadReason ?? job.state} instead of ${ends}`),
  );
}
