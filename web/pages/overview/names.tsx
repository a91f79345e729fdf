import type { VNode } from 'preact';
import { linkTo } from '../../app/router.ts';
import type { Operations } from '../../client/operations.ts';
import { number, percent, span } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { type Column, Table } from '../../components/table.tsx';

type Name = Operations['getHistory']['answer']['names'][number];

const LISTED = 15;

/** How much and how long jobs ran, by name, those that took longest first. */
export function Names({ names }: { readonly names: readonly Name[] }): VNode {
  const rows = names.toSorted((a, b) => (b.p95Ms ?? 0) - (a.p95Ms ?? 0)).slice(0, LISTED);
  if (rows.length === 0) {
    return <Empty title="Nothing ran in this time">Runs are added up within a minute after they ended.</Empty>;
  }
  return <Table caption="Job names, slowest first" columns={columns} rows={rows} rowKey={({ name }) => name} />;
}

const columns: readonly Column<Name>[] = [
  {
    title: 'Job',
    kind: 'main',
    cell: ({ name }) => (
      <a href={linkTo(['jobs'], { name })}>
        <bdi>{name}</bdi>
      </a>
    ),
  },
  { title: 'Median', kind: 'right', cell: ({ p50Ms }) => time(p50Ms) },
  { title: '95 of 100', kind: 'right', cell: ({ p95Ms }) => time(p95Ms) },
  { title: 'Runs', kind: 'right', cell: ({ runs }) => number(runs) },
  {
    title: 'Failed',
    kind: 'right',
    cell: ({ failed, runs }) => (failed === 0 ? '0' : `${number(failed)} (${percent(failed / runs)})`),
  },
  { title: 'Retries', kind: 'right', cell: ({ retries }) => number(retries) },
  { title: 'Died', kind: 'right', cell: ({ dead }) => number(dead) },
];

function time(ms: number | null): string {
  return ms === null ? '–' : span(ms);
}
