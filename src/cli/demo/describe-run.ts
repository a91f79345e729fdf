import type { Job, RunRecord } from '../../job.ts';
import { printable } from '../../printable.ts';
import { errorText } from '../ledger.ts';
import { span } from '../time.ts';

/** `report.build #3` */
export function titleOf({ name, payload }: Job): string {
  return printable(`${name} #${(payload as { number: number }).number}`);
}

/** Jobs that succeed at their first attempt are not listed. */
export function isWorthShowing({ outcome, attempt }: RunRecord): boolean {
  return outcome !== 'completed' || attempt > 1;
}

/** One ended run as a sentence. */
export function describeRun(job: Job, record: RunRecord): string {
  return printable(`${titleOf(job).padEnd(17)} attempt ${record.attempt} ${whatHappened(record)}${whatNext(record)}`);
}

function whatHappened({ outcome, error }: RunRecord): string {
  switch (outcome) {
    case 'completed':
      return 'completed';
    case 'crashed':
      return 'crashed: its worker sent no more heartbeats';
    default:
      return error === null ? outcome : `${outcome}: ${errorText(error)}`;
  }
}

function whatNext({ decision }: RunRecord): string {
  switch (decision.kind) {
    case 'complete':
      return ', saved by a retry';
    case 'retry':
      return `; again in ${span(decision.delayMs)}${decision.why === 'retry-after' ? ', as it was asked to wait' : ''}`;
    case 'dead':
      return `; dead: ${decision.reason} (${decision.rule})`;
    default:
      return '';
  }
}
