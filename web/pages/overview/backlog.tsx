import type { VNode } from 'preact';
import { linkTo } from '../../app/router.ts';
import type { Operations } from '../../client/operations.ts';
import { cappedCount } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';

type Lane = Operations['getForecast']['answer']['lanes'][number];

/** What waits in each lane of each queue, and since when. */
export function Backlog({ lanes }: { readonly lanes: readonly Lane[] }): VNode {
  const waiting = lanes.filter(({ due, later }) => due.count + later.count > 0);
  if (waiting.length === 0) return <Empty title="Nothing waits">Every job that is due runs or has ended.</Empty>;
  return (
    <Table
      caption="Backlog by queue and lane"
      columns={columns}
      rows={waiting}
      rowKey={({ queue, lane }) => `${queue} ${lane}`}
    />
  );
}

const laneWords: Readonly<Record<Lane['lane'], string>> = {
  fresh: 'fresh: not run yet',
  retry: 'retries',
  redrive: 'redriven',
  suspect: 'suspects: run alone',
};

const columns: readonly Column<Lane>[] = [
  {
    title: 'Queue',
    kind: 'main',
    cell: ({ queue }) => (
      <a href={linkTo(['jobs'], { queue, state: 'ready,retrying,scheduled' })}>
        <bdi>{queue}</bdi>
      </a>
    ),
  },
  { title: 'Lane', kind: 'tight', cell: ({ lane }) => laneWords[lane] },
  { title: 'Due', kind: 'right', cell: ({ due }) => cappedCount(due.count, due.isExact) },
  { title: 'Later', kind: 'right', cell: ({ later }) => cappedCount(later.count, later.isExact) },
  {
    title: 'Oldest due',
    kind: 'tight',
    cell: ({ oldestDueAt }) => (oldestDueAt === null ? '–' : <Ago at={oldestDueAt} />),
  },
];
