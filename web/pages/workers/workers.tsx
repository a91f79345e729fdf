import type { VNode } from 'preact';
import { endangersLeases } from '../../../src/store/workers.ts';
import type { Job, RegisteredWorker } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { count } from '../../components/format.ts';
import { Empty, Notice } from '../../components/notice.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { Table } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';
import { columns, type WorkerRow } from './columns.tsx';
import { missingOf } from './missing.ts';

/** So many running jobs are read, of all workers together. */
const MOST_RUNNING = 200;
const MOST_NAMED = 5;
const order = { lost: 0, silent: 1, alive: 2 } as const;

export function WorkersPage(): VNode {
  const loaded = useData(async (signal): Promise<readonly WorkerRow[]> => {
    const [workers, running] = await Promise.all([
      call('listWorkers', { signal }),
      call('listJobs', { query: { state: 'running', limit: MOST_RUNNING }, signal }),
    ]);
    return rowsOf(workers.items, running.items, running.next === null);
  }, []);
  return (
    <Page
      title="Workers"
      lead="Each is seen every 15 seconds or so. Workers that speak HTTP are known by their claims: what they do not say is not shown."
    >
      <WhenLoaded from={loaded}>
        {(workers) => (
          <>
            <Missing workers={missingOf(workers)} />
            <Blocked workers={workers.filter((worker) => worker.alive && endangersLeases(worker))} />
            <Versions workers={workers} />
            {workers.length === 0 ? (
              <Empty title="No worker is registered">Jobs wait until one is.</Empty>
            ) : (
              <Table caption="Workers" columns={columns} rows={workers} rowKey={({ id }) => id} />
            )}
          </>
        )}
      </WhenLoaded>
    </Page>
  );
}

/** Those that are missing first. */
function rowsOf(workers: readonly RegisteredWorker[], running: readonly Job[], isComplete: boolean): WorkerRow[] {
  const jobs = Map.groupBy(running, ({ worker }) => worker);
  return workers
    .map((worker) => ({ ...worker, runs: jobs.get(worker.id) ?? [], isComplete }))
    .sort((a, b) => order[a.state] - order[b.state]);
}

function Missing({ workers }: { readonly workers: readonly RegisteredWorker[] }): VNode | null {
  if (workers.length === 0) return null;
  const more = workers.length - MOST_NAMED;
  return (
    <Notice tone="bad" title={count(workers.length, 'worker is missing', 'workers are missing')}>
      <ul>
        {workers.slice(0, MOST_NAMED).map(({ id, host, lastSeenAt }) => (
          <li key={id}>
            <bdi>{id}</bdi> on <bdi>{host}</bdi>, last seen <Ago at={lastSeenAt} />
          </li>
        ))}
      </ul>
      <p>
        {more > 0 && `And ${count(more, 'other')}. `}
        They were killed, hang, or cannot reach the store. Their jobs start again elsewhere when their leases end.
      </p>
    </Notice>
  );
}

function Blocked({ workers }: { readonly workers: readonly RegisteredWorker[] }): VNode | null {
  if (workers.length === 0) return null;
  return (
    <Notice
      tone="bad"
      title={`${count(workers.length, 'event loop was', 'event loops were')} blocked so long that leases are in danger`}
    >
      <p>
        While a handler computes without a pause, its worker renews no lease, and its jobs run twice. Move the
        computation to a thread, or give <code>work(&#123; lease &#125;)</code> more time.
      </p>
    </Notice>
  );
}

/** Two versions at once are a deploy that goes on, or one that got stuck. */
function Versions({ workers }: { readonly workers: readonly RegisteredWorker[] }): VNode | null {
  const own = workers.filter(({ alive, http }) => alive && http === null);
  const versions = [...new Set(own.map(({ version }) => version ?? 'no version'))];
  if (versions.length < 2) return null;
  return (
    <Notice tone="warn" title={`Workers of ${count(versions.length, 'version')} run`}>
      <p>
        <bdi>{versions.join(', ')}</bdi>. Is a deploy going on?
      </p>
    </Notice>
  );
}
