import type { VNode } from 'preact';
import type { JobState } from '../../../src/job.ts';
import { linkTo } from '../../app/router.ts';
import { type Counted, type Waiting, waitingIn } from '../../client/counts.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { Action } from '../../components/action.tsx';
import { cappedCount, number } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { Mark } from '../../components/state.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';

interface Row extends Waiting {
  readonly queue: string;
  readonly paused: boolean;
  readonly running: Counted;
  readonly dead: Counted;
  /** Live workers that serve it. */
  readonly workers: number;
  /** Since when the first due job is due. */
  readonly oldestDueAt: number | null;
}

export function QueuesPage(): VNode {
  const loaded = useData(async (signal): Promise<Row[]> => {
    const [queues, workers, forecast] = await Promise.all([
      call('listQueues', { signal }),
      call('listWorkers', { signal }),
      call('getForecast', { query: {}, signal }),
    ]);
    const { lanes } = forecast;
    const loads = new Map(forecast.queues.map((load) => [load.queue, load]));
    const paused = new Map(queues.items.map((one) => [one.queue, one.paused]));
    const names = [...new Set([...paused.keys(), ...loads.keys(), ...lanes.map(({ queue }) => queue)])].sort();
    return names.map((queue) => {
      const own = lanes.filter((lane) => lane.queue === queue);
      return {
        queue,
        paused: paused.get(queue) ?? false,
        ...waitingIn(own, forecast),
        running: { count: loads.get(queue)?.running ?? 0, isExact: forecast.running.isExact },
        dead: { count: loads.get(queue)?.ended.dead ?? 0, isExact: true },
        workers: workers.items.filter(({ alive, queues: served }) => alive && served.includes(queue)).length,
        oldestDueAt: oldest(own.map((lane) => lane.oldestDueAt)),
      };
    });
  }, []);
  const order = async (queue: string, what: 'pauseQueue' | 'resumeQueue'): Promise<string> => {
    await call(what, { params: { name: queue }, body: {} });
    loaded.reload();
    return what === 'pauseQueue' ? 'No job of the queue starts until it is resumed.' : 'Jobs of the queue start again.';
  };
  const inState = (queue: string, state: JobState, { count, isExact }: Counted): VNode => (
    <a href={linkTo(['jobs'], { queue, state })}>{cappedCount(count, isExact)}</a>
  );
  const columns: readonly Column<Row>[] = [
    { title: 'Queue', kind: 'main', cell: ({ queue }) => <bdi>{queue}</bdi> },
    { title: 'State', kind: 'tight', cell: (row) => <QueueMark {...row} /> },
    { title: 'Ready', kind: 'right', cell: ({ queue, ready }) => inState(queue, 'ready', ready) },
    {
      title: 'Oldest due',
      kind: 'tight',
      cell: ({ oldestDueAt }) => (oldestDueAt === null ? '–' : <Ago at={oldestDueAt} />),
    },
    { title: 'Running', kind: 'right', cell: ({ queue, running }) => inState(queue, 'running', running) },
    { title: 'Retrying', kind: 'right', cell: ({ queue, retrying }) => inState(queue, 'retrying', retrying) },
    { title: 'Scheduled', kind: 'right', cell: ({ queue, scheduled }) => inState(queue, 'scheduled', scheduled) },
    { title: 'Dead', kind: 'right', cell: ({ queue, dead }) => inState(queue, 'dead', dead) },
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
