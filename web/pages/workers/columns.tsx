import type { VNode } from 'preact';
import { endangersLeases, type WorkerState } from '../../../src/store/workers.ts';
import { linkTo } from '../../app/router.ts';
import type { Job, RegisteredWorker } from '../../client/answers.ts';
import { cappedCount, count, number, span } from '../../components/format.ts';
import type { IconName } from '../../components/icon.tsx';
import { Mark, type Tone } from '../../components/state.tsx';
import type { Column } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';

export interface WorkerRow extends RegisteredWorker {
  /** Its running jobs, as far as they were read. */
  readonly runs: readonly Job[];
  /** Whether all running jobs were read. */
  readonly isComplete: boolean;
}

const MOST_SHOWN = 5;
const marks: Readonly<Record<WorkerState, readonly [IconName, Tone]>> = {
  alive: ['completed', 'good'],
  silent: ['failures', 'warn'],
  lost: ['dead', 'bad'],
};

export const columns: readonly Column<WorkerRow>[] = [
  {
    title: 'Worker',
    kind: 'main',
    cell: ({ id, name }) => (
      <>
        <bdi>{name ?? id}</bdi>
        {name !== null && (
          <div class="muted">
            <bdi>{id}</bdi>
          </div>
        )}
      </>
    ),
  },
  {
    title: 'State',
    kind: 'tight',
    cell: ({ state, lastSeenAt }) => {
      const [icon, tone] = marks[state];
      return (
        <>
          <Mark icon={icon} tone={tone}>
            {state}
          </Mark>
          <div class="muted">
            seen <Ago at={lastSeenAt} />
          </div>
        </>
      );
    },
  },
  { title: 'Running', kind: 'main', cell: (worker) => <Running worker={worker} /> },
  { title: 'Event loop', kind: 'tight', cell: (worker) => <EventLoop worker={worker} /> },
  {
    title: 'Where',
    cell: ({ host, pid, http }) => (
      <>
        <bdi>{host}</bdi>
        <div class="muted">
          {http === null ? (
            `process ${pid}`
          ) : (
            <>
              HTTP{http.agent !== null && ', '}
              <bdi>{http.agent}</bdi>
            </>
          )}
        </div>
      </>
    ),
  },
  {
    title: 'Version',
    cell: ({ version, mulligan, startedAt }) => (
      <>
        <bdi>{version ?? (mulligan === null ? '–' : `mulligan ${mulligan}`)}</bdi>
        <div class="muted">
          started <Ago at={startedAt} />
        </div>
      </>
    ),
  },
  {
    title: 'Takes',
    cell: ({ queues, jobs, http }) => (
      <>
        <bdi>{queues.join(', ')}</bdi>
        <div class="muted clip">
          <bdi>{http?.takesAll ? 'jobs of any name' : jobs.join(', ')}</bdi>
        </div>
      </>
    ),
  },
];

function Running({ worker }: { readonly worker: WorkerRow }): VNode {
  const { runs } = worker;
  const more = runs.length - MOST_SHOWN;
  return (
    <>
      <div>{runningText(worker)}</div>
      {runs.slice(0, MOST_SHOWN).map(({ id, name }) => (
        <div key={id} class="clip">
          <a href={linkTo(['jobs', id])}>
            <bdi>{name}</bdi>
          </a>
        </div>
      ))}
      {more > 0 && (
        <div>
          <a href={linkTo(['jobs'], { state: 'running' })}>and {count(more, 'other')}</a>
        </div>
      )}
    </>
  );
}

/** What the store knows now, where all of it was read; else what the worker said last. A worker claims some jobs ahead. */
function runningText({ running, concurrency, runs, isComplete }: WorkerRow): string {
  if (running === null) return cappedCount(runs.length, isComplete);
  return `${number(isComplete ? Math.min(runs.length, concurrency) : running)} of ${number(concurrency)}`;
}

function EventLoop({ worker }: { readonly worker: WorkerRow }): VNode {
  const { loopDelayMs, leaseMs } = worker;
  if (loopDelayMs === null) return <>–</>;
  const blocked = <span title="The longest that it was blocked in the last minutes">{span(loopDelayMs)}</span>;
  if (!endangersLeases(worker) || leaseMs === null) return blocked;
  return (
    <>
      <Mark icon="failures" tone="bad">
        blocked {span(loopDelayMs)}
      </Mark>
      <div class="muted">leases of {span(leaseMs)}</div>
    </>
  );
}
