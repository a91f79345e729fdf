import type { VNode } from 'preact';
import type { JobState } from '../../../src/job.ts';
import { linkTo } from '../../app/router.ts';
import type { Counted } from '../../client/counts.ts';
import type { Operations } from '../../client/operations.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { Action } from '../../components/action.tsx';
import { cappedCount, number } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { Mark } from '../../components/state.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';

type Lane = Operations['getForecast']['answer']['lanes'][number];

interface Row {
  readonly queue: string;
  readonly paused: boolean;
  readonly ready: Counted;
  readonly retrying: Counted;
  readonly scheduled: Counted;
  /** Live workers that serve it. */
  readonly workers: number;
  /** Since when the first due job is due. */
  readonly oldestDueAt: number | null;
}

export function QueuesPage(): VNode {
  const loaded = useData(async (signal): Promise<Row[]> => {
    const [queues, workers, { lanes }] = await Promise.all([
      call('listQueues', { signal }),
      call('listWorkers', { signal }),
      call('getForecast', { query: {}, signal }),
    ]);
    const paused = new Map(queues.items.map((one) => [one.queue, one.paused]));
    const names = [...new Set([...paused.keys(), ...lanes.map(({ queue }) => queue)])].sort();
    return names.map((queue) => {
      const own = lanes.filter((lane) => lane.queue === queue);
      const isFresh = ({ lane }: Lane): boolean => lane === 'fresh';
      return {
        queue,
        paused: paused.get(queue) ?? false,
        ready: sum(own.map(({ due }) => due)),
        retrying: sum(own.filter((lane) => !isFresh(lane)).map(({ later }) => later)),
        scheduled: sum(own.filter(isFresh).map(({ later }) => later)),
        workers: workers.items.filter(({ alive, queues: served }) => alive && served.includes(queue)).length,
        oldestDueAt: oldest(own.map((lane) => lane.oldestDueAt)),
      };
    });
  }, []);
  const stats = useData((signal) => call('getStats', { signal }), [], 'slow').data?.queues ?? {};
  const order = async (queue: string, what: 'pauseQueue' | 'resumeQueue'): Promise<string> => {
    await call(what, { params: { name: queue }, body: {} });
    loaded.reload();
    return what === 'pauseQueue' ? 'No job of the queue starts until it is resumed.' : 'Jobs of the queue start again.';
  };
  const waiting = (queue: string, state: JobState, { count, isExact }: Counted): VNode => (
    <a href={linkTo(['jobs'], { queue, state })}>{cappedCount(count, isExact)}</a>
  );
  const others = (queue: string, state: 'running' | 'dead'): VNode | string => {
    const known = Object.hasOwn(stats, queue) ? stats[queue] : undefined;
    return known === undefined ? '–' : waiting(queue, state, { count: known.states[state], isExact: true });
  };
  const columns: readonly Column<Row>[] = [
    { title: 'Queue', kind: 'main', cell: ({ queue }) => <bdi>{queue}</bdi> },
    { title: 'State', kind: 'tight', cell: (row) => <QueueMark {...row} /> },
    { title: 'Ready', kind: 'right', cell: ({ queue, ready }) => waiting(queue, 'ready', ready) },
    {
      title: 'Oldest due',
      kind: 'tight',
      cell: ({ oldestDueAt }) => (oldestDueAt === null ? '–' : <Ago at={oldestDueAt} />),
    },
    { title: 'Running', kind: 'right', cell: ({ queue }) => others(queue, 'running') },
    { title: 'Retrying', kind: 'right', cell: ({ queue, retrying }) => waiting(queue, 'retrying', retrying) },
    { title: 'Scheduled', kind: 'right', cell: ({ queue, scheduled }) => waiting(queue, 'scheduled', scheduled) },
    { title: 'Dead', kind: 'right', cell: ({ queue }) => others(queue, 'dead') },
    { title: 'Workers', kind: 'right', cell: ({ workers }) => number(workers) },
    {
      title: 'Do',
      kind: 'tight',
      cell: ({ queue, paused }) =>
        paused ? (
          <Action isSmall label={`Resume ${queue}`} act={() => order(queue, 'resumeQueue')}>
            Resume
          </Action>
        ) : (
          <Action isSmall label={`Pause ${queue}`} act={() => order(queue, 'pauseQueue')}>
            Pause
          </Action>
        ),
    },
  ];
  return (
    <Page title="Queues" lead="A queue that is paused keeps its jobs; none of them starts.">
      <WhenLoaded from={loaded}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No queue yet">A queue exists from its first job on.</Empty>
          ) : (
            <Table caption="Queues" columns={columns} rows={rows} rowKey={({ queue }) => queue} />
          )
        }
      </WhenLoaded>
    </Page>
  );
}

function sum(parts: readonly Counted[]): Counted {
  return {
    count: parts.reduce((total, { count }) => total + count, 0),
    isExact: parts.every(({ isExact }) => isExact),
  };
}

function oldest(times: readonly (number | null)[]): number | null {
  const known = times.filter((at) => at !== null);
  return known.length === 0 ? null : Math.min(...known);
}

function QueueMark({ paused, workers, ready }: Row): VNode {
  if (paused) {
    return (
      <Mark icon="paused" tone="warn">
        paused
      </Mark>
    );
  }
  if (workers === 0 && ready.count > 0) {
    return (
      <Mark icon="failures" tone="bad">
        no worker
      </Mark>
    );
  }
  return (
    <Mark icon={workers === 0 ? 'ready' : 'completed'} tone={workers === 0 ? 'none' : 'good'}>
      {workers === 0 ? 'idle' : 'served'}
    </Mark>
  );
}
