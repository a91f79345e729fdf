import type { VNode } from 'preact';
import { type Location, linkTo, replaceQuery } from '../../app/router.ts';
import type { ErrorGroup } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { number, percent, short } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';
import { GroupPage } from './group.tsx';
import { type ErrorHistory, Trend } from './over-time.tsx';
import { errorTitle } from './title.ts';

export function FailuresPage(location: Location): VNode {
  const [, fingerprint] = location.path;
  return fingerprint === undefined ? <Groups {...location} /> : <GroupPage fingerprint={fingerprint} {...location} />;
}

/** An error group and one of the job names that it affects. */
interface Row {
  readonly group: ErrorGroup;
  readonly name: string;
  readonly queue: string;
  readonly failing: number;
  readonly dead: number;
  readonly failures: number;
}

const LISTED = 50;
const states = [
  ['', 'All'],
  ['dead', 'With dead jobs'],
  ['failing', 'Still failing'],
] as const;

/** What the small columns of a row show. */
const trends = {
  hour: { title: 'Last hour', query: { from: '1h', step: '5m' } },
  day: { title: 'Last 24 h', query: { from: '24h', step: '1h' } },
} as const;

function Groups({ query }: Location): VNode {
  const filter = Object.fromEntries(query);
  const trend = filter.since === '10m' || filter.since === '1h' ? trends.hour : trends.day;
  const loaded = useData(
    async (signal) => {
      const [{ items }, history] = await Promise.all([
        call('listErrors', { query: { ...filter, limit: LISTED }, signal }),
        call('getErrorHistory', { query: { ...trend.query, ...(filter.name && { name: filter.name }) }, signal }),
      ]);
      return { items, history };
    },
    [query.toString()],
  );
  return (
    <Page
      title="Failures"
      lead="Errors of one kind are one group, whatever ids and numbers their messages hold. The worst come first."
    >
      <div class="fields">
        <label class="field">
          <span>Job name</span>
          <input
            type="search"
            value={filter.name ?? ''}
            placeholder="all"
            onChange={(event) => replaceQuery({ ...filter, name: event.currentTarget.value })}
          />
        </label>
        <label class="field">
          <span>Which</span>
          <select
            value={filter.state ?? ''}
            onChange={(event) => replaceQuery({ ...filter, state: event.currentTarget.value })}
          >
            {states.map(([value, title]) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Seen within</span>
          <select
            value={filter.since ?? ''}
            onChange={(event) => replaceQuery({ ...filter, since: event.currentTarget.value })}
          >
            <option value="">any time</option>
            <option value="10m">10 minutes</option>
            <option value="1h">an hour</option>
            <option value="1d">a day</option>
          </select>
        </label>
      </div>
      <WhenLoaded from={loaded}>
        {({ items, history }) =>
          items.length === 0 ? (
            <Empty title="No failures">Nothing fails, and nothing has died of an error that is kept here.</Empty>
          ) : (
            <Table
              caption="Error groups by job name"
              columns={columnsOf(history, trend.title)}
              rows={rowsOf(items)}
              rowKey={({ group, name, queue }) => `${group.fingerprint} ${name} ${queue}`}
            />
          )
        }
      </WhenLoaded>
    </Page>
  );
}

function rowsOf(groups: readonly ErrorGroup[]): Row[] {
  return groups
    .flatMap((group) => group.names.map((one): Row => ({ group, ...one })))
    .sort((a, b) => b.dead + b.failing - (a.dead + a.failing) || b.group.lastSeenAt - a.group.lastSeenAt);
}

const columnsOf = (history: ErrorHistory, title: string): readonly Column<Row>[] => [
  {
    title: 'Error',
    kind: 'main',
    cell: ({ group, name }) => (
      <>
        <a href={linkTo(['failures', group.fingerprint], { name })}>
          <bdi>{errorTitle(group)}</bdi>
        </a>
        <div class="muted clip">
          <bdi>{short(group.sample?.error.message ?? '', 240)}</bdi>
        </div>
      </>
    ),
  },
  {
    title: 'Job',
    cell: ({ name, queue }) => (
      <>
        <bdi>{name}</bdi>
        <div class="muted">
          <bdi>{queue}</bdi>
        </div>
      </>
    ),
  },
  {
    title,
    kind: 'tight',
    cell: ({ group, name, queue }) => {
      const series = history.series.find(
        (one) => one.fingerprint === group.fingerprint && one.name === name && one.queue === queue,
      );
      return <Trend history={history} {...(series && { series })} />;
    },
  },
  { title: 'Dead', kind: 'right', cell: ({ dead }) => number(dead) },
  { title: 'Failing', kind: 'right', cell: ({ failing }) => number(failing) },
  { title: 'Failed runs', kind: 'right', cell: ({ failures }) => number(failures) },
  { title: 'Recovered', kind: 'right', cell: ({ group }) => recoveredText(group) },
  { title: 'Last seen', kind: 'tight', cell: ({ group }) => <Ago at={group.lastSeenAt} /> },
];

export function recoveredText({ recoveredShare }: ErrorGroup): string {
  return recoveredShare === null ? '–' : percent(recoveredShare);
}
