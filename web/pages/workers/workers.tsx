import type { VNode } from 'preact';
import type { RegisteredWorker } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { count, number } from '../../components/format.ts';
import { Empty, Notice } from '../../components/notice.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { Mark } from '../../components/state.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';

export function WorkersPage(): VNode {
  const loaded = useData((signal) => call('listWorkers', { signal }), []);
  return (
    <Page
      title="Workers"
      lead="Each is seen every 15 seconds or so. Workers that speak HTTP do not register; the runs of their jobs name them."
    >
      <WhenLoaded from={loaded}>
        {({ items }) => (
          <>
            <Versions workers={items} />
            {items.length === 0 ? (
              <Empty title="No worker is registered">Jobs wait until one is.</Empty>
            ) : (
              <Table caption="Workers" columns={columns} rows={items} rowKey={({ id }) => id} />
            )}
          </>
        )}
      </WhenLoaded>
    </Page>
  );
}

/** Two versions at once are a deploy that goes on, or one that got stuck. */
function Versions({ workers }: { readonly workers: readonly RegisteredWorker[] }): VNode | null {
  const versions = [...new Set(workers.filter(({ alive }) => alive).map(({ version }) => version ?? 'no version'))];
  if (versions.length < 2) return null;
  return (
    <Notice tone="warn" title={`Workers of ${count(versions.length, 'version')} run`}>
      <p>
        <bdi>{versions.join(', ')}</bdi>. Is a deploy going on?
      </p>
    </Notice>
  );
}

const columns: readonly Column<RegisteredWorker>[] = [
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
    cell: ({ alive }) =>
      alive ? (
        <Mark icon="completed" tone="good">
          alive
        </Mark>
      ) : (
        <Mark icon="dead" tone="bad">
          silent
        </Mark>
      ),
  },
  {
    title: 'Where',
    cell: ({ host, pid }) => (
      <>
        <bdi>{host}</bdi>
        <div class="muted">process {pid}</div>
      </>
    ),
  },
  { title: 'Version', cell: ({ version, mulligan }) => <bdi>{version ?? `mulligan ${mulligan}`}</bdi> },
  {
    title: 'Takes',
    cell: ({ queues, jobs, concurrency }) => (
      <>
        {number(concurrency)} at once of <bdi>{queues.join(', ')}</bdi>
        <div class="muted clip">
          <bdi>{jobs.join(', ')}</bdi>
        </div>
      </>
    ),
  },
  { title: 'Started', kind: 'tight', cell: ({ startedAt }) => <Ago at={startedAt} /> },
  { title: 'Seen', kind: 'tight', cell: ({ lastSeenAt }) => <Ago at={lastSeenAt} /> },
];
