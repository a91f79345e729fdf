import type { VNode } from 'preact';
import { takesJob } from '../../../src/store/workers.ts';
import { linkTo } from '../../app/router.ts';
import type { ErrorGroup, RegisteredWorker } from '../../client/answers.ts';
import { number, span } from '../../components/format.ts';
import { Notice } from '../../components/notice.tsx';

/** An error that is first seen so soon after a worker started may have come with its version. */
const SOON_MS = 600_000;

interface CauseProps {
  readonly group: ErrorGroup;
  readonly workers: readonly RegisteredWorker[];
}

/** What may have caused it, and what to do then; nothing when the group alone does not tell. */
export function Cause({ group, workers }: CauseProps): VNode | null {
  if (group.failing + group.dead === 0) return null;
  if (group.sample?.error.code !== 'CRASHED') return <Deployed group={group} workers={workers} />;
  return (
    <Notice tone="warn" title="Which job kills its process?">
      <p>
        Jobs that ran beside it crashed, too, and recover. One that crashes again and again is the suspect: open it, and
        cancel it.
      </p>
    </Notice>
  );
}

/** Whether the error came, or went, with the workers that run now. */
function Deployed({ group: { firstSeenAt, lastSeenAt, names, dead }, workers }: CauseProps): VNode | null {
  const takers = workers.filter(
    (worker) =>
      worker.alive && names.some(({ name, queue }) => worker.queues.includes(queue) && takesJob(worker, name)),
  );
  const started = takers.map(({ startedAt }) => startedAt);
  const versions = [...new Set(takers.map(({ version }) => version))].filter((version) => version !== null);
  if (versions.length === 0) return null;
  if (dead > 0 && Math.min(...started) > lastSeenAt) {
    return (
      <Notice tone="good" title="Not seen since the workers were started again">
        <p>
          All {number(takers.length)} that take these jobs started later, as version <bdi>{versions.join(', ')}</bdi>.
          Redrive with a canary.
        </p>
      </Notice>
    );
  }
  const before = started.filter((at) => at <= firstSeenAt && firstSeenAt - at < SOON_MS);
  if (before.length === 0) return null;
  return (
    <Notice tone="warn" title="Did it come with a deploy?">
      <p>
        First seen {span(firstSeenAt - Math.max(...before))} after a worker started; workers run version{' '}
        <a href={linkTo(['workers'])}>
          <bdi>{versions.join(', ')}</bdi>
        </a>
        . If so, roll back first, then redrive with a canary.
      </p>
    </Notice>
  );
}
