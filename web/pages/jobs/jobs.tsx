import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { type Location, linkTo, replaceQuery } from '../../app/router.ts';
import type { Job } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { Action } from '../../components/action.tsx';
import { type BulkAction, BulkDialog, type BulkSelection } from '../../components/bulk-dialog.tsx';
import { COUNT_CAP, cappedCount, count, number, short } from '../../components/format.ts';
import { Empty, Notice } from '../../components/notice.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { StateMark } from '../../components/state.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';
import { JobPage } from '../job/job.tsx';
import { Filters } from './filters.tsx';

const PAGE = 50;

export function JobsPage(location: Location): VNode {
  const [, id] = location.path;
  return id === undefined ? <JobList {...location} /> : <JobPage key={id} id={id} />;
}

function JobList({ query }: Location): VNode {
  const filter = Object.fromEntries(query);
  const { cursor, payload, ...selection } = filter;
  const [action, setAction] = useState<BulkAction | null>(null);
  const loaded = useData(
    async (signal) => {
      const [page, counted] = await Promise.all([
        call('listJobs', { query: { ...filter, limit: PAGE }, signal }),
        call('countJobs', { query: { ...selection, limit: COUNT_CAP + 1 }, signal }),
      ]);
      return { page, counted };
    },
    [query.toString()],
  );
  const { data, reload } = loaded;
  const isBare = Object.keys(selection).length === 0;
  const isFound = payload === undefined ? !isBare : (data?.page.items.length ?? 0) > 0;
  const buttons: readonly [BulkAction, string][] = [
    ['runNow', 'Run now…'],
    ['redrive', 'Redrive…'],
    ['cancel', 'Cancel…'],
    ['discard', 'Discard…'],
  ];
  return (
    <Page
      title="Jobs"
      lead={data === null ? undefined : countWords(data.counted, payload, data.page.items.length)}
      actions={buttons.map(([name, title]) => (
        <Action
          key={name}
          act={() => setAction(name)}
          disabled={!isFound || !concerns(name, selection.state)}
          tone={name === 'cancel' || name === 'discard' ? 'danger' : ''}
        >
          {title}
        </Action>
      ))}
    >
      <Filters filter={filter} onChange={(changed) => replaceQuery({ ...filter, cursor: undefined, ...changed })} />
      <WhenLoaded from={loaded}>
        {({ page: { items, next, ...rest } }) => (
          <>
            <SearchNote
              payload={payload}
              message={selection.message}
              lookedAt={(rest as { lookedAt?: number }).lookedAt}
              next={next}
            />
            {items.length === 0 ? (
              <Empty title="No job matches">
                {isBare ? 'Nothing was enqueued yet.' : 'Change the filters, or remove some.'}
              </Empty>
            ) : (
              <Table caption="Jobs" columns={columns} rows={items} rowKey={({ id }) => id} />
            )}
            <div class="actions">
              {cursor !== undefined && (
                <a class="button" href={linkTo(['jobs'], { ...filter, cursor: undefined })}>
                  Newest
                </a>
              )}
              {next !== null && (
                <a class="button" href={linkTo(['jobs'], { ...filter, cursor: next })}>
                  Older
                </a>
              )}
            </div>
          </>
        )}
      </WhenLoaded>
      {action !== null && (
        <BulkDialog
          action={action}
          selection={bulkSelection(action, selection, payload === undefined ? null : (data?.page.items ?? []))}
          which={payload === undefined ? 'All jobs that match the filters.' : 'The jobs that are listed.'}
          onClose={() => setAction(null)}
          onBegun={reload}
        />
      )}
    </Page>
  );
}

function countWords(counted: { count: number; isExact: boolean }, payload: string | undefined, found: number): string {
  if (payload !== undefined) return `${count(found, 'job')} found in payloads.`;
  const isCapped = counted.count > COUNT_CAP;
  const shown = cappedCount(Math.min(counted.count, COUNT_CAP), counted.isExact && !isCapped);
  return `${shown} ${counted.count === 1 ? 'job matches' : 'jobs match'}.`;
}

/** Redrive and discard are for dead jobs: where the filters leave these out, nothing that is listed is meant. */
function concerns(action: BulkAction, state: string | undefined): boolean {
  const chosen = state?.split(',');
  return chosen === undefined || chosen.some((one) => applicable[action].includes(one));
}

const applicable: Readonly<Record<BulkAction, readonly string[]>> = {
  runNow: ['scheduled', 'retrying', 'running'],
  redrive: ['dead'],
  discard: ['dead'],
  cancel: ['scheduled', 'ready', 'retrying', 'running'],
};

/** The filters as a body takes them. A search in payloads has no condition of its own: the jobs that it found are named. */
function bulkSelection(
  action: BulkAction,
  { state, attempts, ...rest }: Record<string, string>,
  found: readonly Job[] | null,
): BulkSelection {
  const isOfDead = action === 'redrive' || action === 'discard';
  return {
    ...rest,
    ...(state !== undefined && { state: isOfDead ? 'dead' : state.split(',') }),
    ...(attempts !== undefined && { attempts: Number(attempts) }),
    ...(found !== null && { ids: found.map(({ id }) => id) }),
  };
}

interface SearchNoteProps {
  readonly payload: string | undefined;
  readonly message: string | undefined;
  readonly lookedAt: number | undefined;
  readonly next: string | null;
}

/** A search without an index is bounded, and says so. */
function SearchNote({ payload, message, lookedAt, next }: SearchNoteProps): VNode | null {
  if (payload !== undefined && lookedAt !== undefined) {
    return (
      <Notice tone="calm" title={`Looked into the payloads of ${number(lookedAt)} jobs, newest first`}>
        <p>
          {next === null ? 'That were all that match the other filters.' : 'There are more: “Older” goes on.'} Redacted
          fields are not searched.
        </p>
      </Notice>
    );
  }
  if (message === undefined) return null;
  return <p class="muted">A search in messages looks at 100,000 jobs at most; “Older” goes on.</p>;
}

const columns: readonly Column<Job>[] = [
  {
    title: 'Job',
    kind: 'main',
    cell: ({ id, name, lastError, state }) => (
      <>
        <a href={linkTo(['jobs', id])}>
          <bdi>{name}</bdi>
        </a>
        {lastError !== null && state !== 'completed' && (
          <div class="muted clip">
            <bdi>{short(`${lastError.name}: ${lastError.message}`, 240)}</bdi>
          </div>
        )}
      </>
    ),
  },
  { title: 'State', kind: 'tight', cell: ({ state, deadReason }) => <StateMark state={state} reason={deadReason} /> },
  { title: 'Queue', cell: ({ queue }) => <bdi>{queue}</bdi> },
  {
    title: 'Attempts',
    kind: 'right',
    cell: ({ attempts, policy }) => `${number(attempts)} of ${number(policy.maxAttempts)}`,
  },
  { title: 'When', kind: 'tight', cell: When },
];

function When({ state, dueAt, finishedAt, enqueuedAt }: Job): VNode {
  if (finishedAt !== null) return <Ago at={finishedAt} />;
  return state === 'scheduled' || state === 'retrying' ? <Ago at={dueAt} /> : <Ago at={enqueuedAt} />;
}
