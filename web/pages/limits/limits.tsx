import type { VNode } from 'preact';
import { type Location, linkTo } from '../../app/router.ts';
import type { LimitSummary } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { number, span } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { LimitPage } from './limit.tsx';

export function LimitsPage({ path }: Location): VNode {
  const [, name] = path;
  return name === undefined ? <LimitList /> : <LimitPage key={name} name={name} />;
}

function LimitList(): VNode {
  const loaded = useData((signal) => call('listLimits', { signal }), []);
  return (
    <Page
      title="Limits"
      lead="How many jobs of one key may run at once, and how often they may start, over all processes."
    >
      <WhenLoaded from={loaded}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No limit is known">
              A limit is known from when a process was first opened with a job that names it.
            </Empty>
          ) : (
            <Table caption="Limits" columns={columns} rows={items} rowKey={({ name }) => name} />
          )
        }
      </WhenLoaded>
    </Page>
  );
}

const columns: readonly Column<LimitSummary>[] = [
  {
    title: 'Limit',
    kind: 'main',
    cell: ({ name, set }) => (
      <>
        <a href={linkTo(['limits', name])}>
          <bdi>{name}</bdi>
        </a>
        {set !== null && <div class="muted">changed by hand</div>}
      </>
    ),
  },
  { title: 'At once, per key', kind: 'right', cell: ({ settings }) => bound(settings.concurrency) },
  { title: 'At once, all keys', kind: 'right', cell: ({ settings }) => bound(settings.total) },
  { title: 'Starts', kind: 'tight', cell: ({ settings }) => rateText(settings.rate) },
  { title: 'Running', kind: 'right', cell: ({ running }) => number(running) },
  { title: 'Waiting', kind: 'right', cell: ({ waiting }) => number(waiting) },
];

export function bound(value: number | null): string {
  return value === null ? 'no bound' : number(value);
}

export function rateText(rate: LimitSummary['settings']['rate']): string {
  return rate === null ? 'no bound' : `${number(rate.limit)} per ${span(rate.perMs)}`;
}
