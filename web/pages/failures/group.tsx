import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { type Location, linkTo, replaceQuery } from '../../app/router.ts';
import type { ErrorGroup, Job, RegisteredWorker } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { Action } from '../../components/action.tsx';
import { type BulkAction, BulkDialog } from '../../components/bulk-dialog.tsx';
import { Tile } from '../../components/facts.tsx';
import { count, number, percent, short } from '../../components/format.ts';
import { JobCell } from '../../components/job-cell.tsx';
import { LongText } from '../../components/json.tsx';
import { Empty, Notice } from '../../components/notice.tsx';
import { Operations } from '../../components/operations.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { StateMark } from '../../components/state.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';
import { Attempts } from './attempts.tsx';
import { Cause } from './cause.tsx';
import { type ErrorHistory, OverTime, readRange } from './over-time.tsx';
import { errorTitle } from './title.ts';

const SAMPLES = 10;
const OPERATIONS_LOOKED_AT = 100;

interface Shown {
  readonly group: ErrorGroup;
  readonly jobs: readonly Job[];
  readonly workers: readonly RegisteredWorker[];
  readonly history: ErrorHistory;
  readonly operations: Awaited<ReturnType<typeof call<'listAudit'>>>['items'];
}

/** One error group: what fails, what became of it, and what to do. */
export function GroupPage({ fingerprint, query }: Location & { readonly fingerprint: string }): VNode {
  const name = query.get('name') ?? undefined;
  const [action, setAction] = useState<BulkAction | null>(null);
  const range = readRange(query);
  const selection = { error: fingerprint, ...(name !== undefined && { name }) };
  const loaded = useData(
    async (signal): Promise<Shown> => {
      const [group, history, dead, retrying, workers, audit] = await Promise.all([
        call('getError', { params: { name: fingerprint }, signal }),
        call('getErrorHistory', { query: { ...selection, from: range }, signal }),
        call('listDead', { query: { ...selection, limit: SAMPLES }, signal }),
        call('listJobs', {
          query: { ...selection, state: 'retrying,ready,scheduled,running', limit: SAMPLES },
          signal,
        }),
        call('listWorkers', { signal }),
        call('listAudit', { query: { limit: OPERATIONS_LOOKED_AT }, signal }),
      ]);
      const operations = audit.items.filter((operation) => operation.selection.error === group.fingerprint);
      return { group, history, jobs: [...dead.items, ...retrying.items], workers: workers.items, operations };
    },
    [fingerprint, name, range],
  );
  const { data, reload } = loaded;
  const own = data?.group.names.filter((one) => name === undefined || one.name === name) ?? [];
  const dead = own.reduce((sum, one) => sum + one.dead, 0);
  const failing = own.reduce((sum, one) => sum + one.failing, 0);
  return (
    <Page
      title={data === null ? 'Error group' : <bdi>{errorTitle(data.group)}</bdi>}
      lead={
        <>
          {name !== undefined && (
            <>
              Jobs <bdi>{name}</bdi>.{' '}
            </>
          )}
          {data !== null && (
            <>
              First seen <Ago at={data.group.firstSeenAt} />, last <Ago at={data.group.lastSeenAt} />.
            </>
          )}
        </>
      }
      actions={
        <>
          <Action tone="primary" act={() => setAction('redrive')} disabled={dead === 0}>
            Redrive…
          </Action>
          <Action act={() => setAction('runNow')} disabled={failing === 0}>
            Run now…
          </Action>
          <Action tone="danger" act={() => setAction('discard')} disabled={dead === 0}>
            Discard…
          </Action>
        </>
      }
    >
      <p>
        <a href={linkTo(['failures'])}>All failures</a>
      </p>
      <WhenLoaded from={loaded}>
        {({ group, history, jobs, workers, operations }) => (
          <>
            {group.sample !== null && (
              <p class="clip">
                <bdi>{short(group.sample.error.message, 240)}</bdi>
              </p>
            )}
            <Cause group={group} workers={workers} />
            <div class="tiles">
              <Tile
                label="Dead"
                value={number(dead)}
                note="until redriven or discarded"
                href={linkTo(['jobs'], { ...selection, state: 'dead' })}
              />
              <Tile
                label="Failing"
                value={number(failing)}
                note="will be retried"
                href={linkTo(['jobs'], { ...selection, state: 'retrying,ready,scheduled,running' })}
              />
              <Tile label="Failed runs" value={number(group.failures)} note={`of ${count(group.jobs, 'job')}`} />
              <Tile
                label="Recovered on retry"
                value={group.recoveredShare === null ? '–' : percent(group.recoveredShare)}
                note={count(group.recovered, 'job')}
              />
              <Tile
                label="Redriven"
                value={number(group.redriven)}
                note={`${number(group.recurred)} failed the same way again`}
              />
            </div>
            {group.redriven > 0 && group.recurred > 0 && group.recurred >= group.redriven / 2 && (
              <Notice tone="warn" title="Redriving has not helped so far">
                <p>
                  {number(group.recurred)} of {number(group.redriven)} redriven jobs failed with this error again. Find
                  the cause first, or try a small canary.
                </p>
              </Notice>
            )}
            <OverTime
              history={history}
              operations={operations}
              range={range}
              choose={(value) => replaceQuery({ ...(name !== undefined && { name }), range: value })}
            />
            {operations.length > 0 && (
              <section class="stack">
                <h2>Actions on this group</h2>
                <Operations operations={operations.slice(0, 5)} reload={reload} />
              </section>
            )}
            <section class="stack">
              <h2>Jobs, newest first</h2>
              {jobs.length === 0 ? (
                <Empty title="No job has this error now">They recovered, were discarded, or are no longer kept.</Empty>
              ) : (
                <Table caption="Jobs with this error" columns={columns} rows={jobs} rowKey={({ id }) => id} />
              )}
            </section>
            <div class="columns">
              {group.sample !== null && (
                <section class="card stack">
                  <h2>The first one, and its stack</h2>
                  <LongText
                    label="Stack of the first error"
                    text={group.sample.error.stack ?? group.sample.error.message}
                  />
                  <p>
                    <a href={linkTo(['jobs', group.sample.jobId])}>The job that failed with it first</a>
                  </p>
                </section>
              )}
              {group.recoveredAt.length > 0 && <Attempts group={group} />}
            </div>
          </>
        )}
      </WhenLoaded>
      {action !== null && (
        <BulkDialog
          action={action}
          selection={selection}
          which={`Jobs whose last error is this one${name === undefined ? '' : `, of the name ${short(name, 80)}`}.`}
          onClose={() => setAction(null)}
          onBegun={reload}
        />
      )}
    </Page>
  );
}

const columns: readonly Column<Job>[] = [
  {
    title: 'Job',
    kind: 'main',
    cell: ({ id, name, lastError }) => <JobCell id={id} name={name} detail={lastError?.message ?? ''} />,
  },
  { title: 'State', kind: 'tight', cell: ({ state, deadReason }) => <StateMark state={state} reason={deadReason} /> },
  {
    title: 'Attempts',
    kind: 'right',
    cell: ({ attempts, policy, crashes }) => (
      <>
        {attempts} of {policy.maxAttempts}
        {crashes > 0 && <div class="muted">{count(crashes, 'crash', 'crashes')}</div>}
      </>
    ),
  },
  { title: 'When', kind: 'tight', cell: ({ finishedAt, dueAt }) => <Ago at={finishedAt ?? dueAt} /> },
];
