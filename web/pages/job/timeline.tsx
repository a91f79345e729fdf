import type { VNode } from 'preact';
import type { Job, RunRecord } from '../../client/answers.ts';
import { clock, moment, span } from '../../components/format.ts';
import { OutcomeMark } from '../../components/state.tsx';
import { useNow } from '../../components/time.tsx';
import { decisionWords } from './words.ts';

/** A part of the life of a job: it waited, or it ran. */
interface Part {
  readonly key: string;
  readonly kind: 'wait' | RunRecord['outcome'] | 'running';
  readonly fromAt: number;
  readonly toAt: number;
  readonly title: string;
}

/**
 * All runs and waits in the order of time. Widths grow with the logarithm of the time: a wait of an hour would otherwise make
 * runs of milliseconds invisible.
 */
export function Timeline({ job, runs }: { readonly job: Job; readonly runs: readonly RunRecord[] }): VNode {
  const now = useNow();
  const parts = partsOf(job, runs, now);
  return (
    <figure class="timeline" aria-label={`${runs.length} finished runs and the waits between them`}>
      <div class="timeline-strip" role="img" aria-label={parts.map(({ title }) => title).join('; ')}>
        {parts.map(({ key, kind, fromAt, toAt, title }) => (
          <div key={key} class={`part part-${kind}`} title={title} style={{ flexGrow: widthOf(toAt - fromAt) }} />
        ))}
      </div>
      <div class="timeline-ends">
        <span title={moment(job.enqueuedAt)}>enqueued {clock(job.enqueuedAt)}</span>
        <span>{job.finishedAt === null ? 'now' : `${job.state} ${clock(job.finishedAt)}`}</span>
      </div>
    </figure>
  );
}

/** A run of no time at all still has some width. */
function widthOf(ms: number): number {
  return 0.12 + Math.log10(1 + ms / 5);
}

function partsOf(job: Job, runs: readonly RunRecord[], now: number): Part[] {
  const parts: Part[] = [];
  let at = job.enqueuedAt;
  for (const { run, outcome, startedAt, endedAt } of runs) {
    if (startedAt > at) parts.push(wait(`wait before ${run}`, at, startedAt));
    parts.push({
      key: `run ${run}`,
      kind: outcome,
      fromAt: startedAt,
      toAt: endedAt,
      title: `run ${run} ${outcome} after ${span(endedAt - startedAt)}`,
    });
    at = endedAt;
  }
  if (job.finishedAt !== null) return parts;
  if (job.state === 'running') {
    parts.push({ key: 'running', kind: 'running', fromAt: at, toAt: Math.max(at, now), title: 'running now' });
  } else {
    parts.push(wait('waiting', at, Math.max(at + 1, now)));
  }
  return parts;
}

function wait(key: string, fromAt: number, toAt: number): Part {
  return { key, kind: 'wait', fromAt, toAt, title: `waited ${span(toAt - fromAt)}` };
}

/** The same as a list: each run with its error, and what was decided after it. */
export function RunList({ job, runs }: { readonly job: Job; readonly runs: readonly RunRecord[] }): VNode {
  return (
    <ol class="runs">
      {runs.map((record) => (
        <li key={record.run}>
          <div class="run-head">
            <strong>Run {record.run}</strong>
            <OutcomeMark outcome={record.outcome} />
            <span class="muted">
              {record.counted ? `attempt ${record.attempt}` : 'uncounted'}, {clock(record.startedAt)}, took{' '}
              {span(record.endedAt - record.startedAt)}, by <bdi>{record.worker}</bdi>
            </span>
          </div>
          {record.error !== null && (
            <p class="run-error clip">
              <bdi>
                {record.error.name}
                {record.error.status === null ? '' : ` (HTTP ${record.error.status})`}
                {record.error.code === null ? '' : ` (${record.error.code})`}: {record.error.message.slice(0, 1_000)}
              </bdi>
            </p>
          )}
          <p class="run-decision">
            <bdi>{decisionWords(job, record)}</bdi>
          </p>
        </li>
      ))}
    </ol>
  );
}
