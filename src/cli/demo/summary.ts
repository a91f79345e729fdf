import type { Job, RunRecord } from '../../job.ts';
import type { Mulligan } from '../../mulligan.ts';
import type { Stats } from '../../observe/stats.ts';
import { ledgerLines, stateStyles } from '../ledger.ts';
import type { Output } from '../output.ts';
import { totalsLines } from '../stats.ts';
import { titleOf } from './describe-run.ts';
import { jobTypes } from './jobs.ts';

export interface Summary {
  readonly jobs: readonly { readonly job: Job; readonly runs: readonly RunRecord[] }[];
  readonly stats: Stats;
}

export async function readSummary(mulligan: Mulligan, jobs: readonly Job[]): Promise<Summary> {
  const [stats, ...ledgers] = await Promise.all([
    mulligan.stats(),
    ...jobs.map(async (job) => ({ job, runs: await mulligan.jobs.runs(job.id) })),
  ]);
  return { jobs: ledgers, stats };
}

/** One job of each of these is shown with its ledger. */
const shownJobs: readonly { readonly name: string; readonly remark: string }[] = [
  { name: 'report.build', remark: 'Two failures, a wait after each, and then it completed.' },
  { name: 'sms.send', remark: 'The other side asked for a second, and the retry waited at least that long.' },
  { name: 'card.charge', remark: 'All attempts are spent: it is dead, and kept for review.' },
  { name: 'invoice.import', remark: 'Retrying cannot help here, so no attempt was wasted on it.' },
  {
    name: 'image.decode',
    remark: 'It took its process down three times, and is dead instead of crashing the next one.',
  },
  {
    name: 'image.resize',
    remark: 'It only ran beside the killer: it was rescued from the dead process, and completed.',
  },
];

export function summaryLines({ jobs, stats }: Summary, output: Output): string[] {
  const ledgers = shownJobs.flatMap(({ name, remark }) => {
    const shown = jobs.find(({ job }) => job.name === name);
    if (shown === undefined) return [];
    const { job, runs } = shown;
    const state = output.paint(stateStyles[job.state], job.deadReason === null ? job.state : `dead: ${job.deadReason}`);
    return ['', `${output.paint('bold', titleOf(job))}  ${state}  ${remark}`, ...ledgerLines(runs, output)];
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

/** Jobs that did not end as they should. The demo checks itself. */
export function unexpectedEnds({ jobs }: Summary): string[] {
  return jobTypes.flatMap(({ definition, ends }) =>
    jobs
      .filter(({ job }) => job.name === definition.name && (job.deadReason ?? job.state) !== ends)
      .map(({ job }) => `${titleOf(job)} ended ${job.deadReason ?? job.state} instead of ${ends}`),
  );
}
