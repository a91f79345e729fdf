import type { VNode } from 'preact';
import { type Location, linkTo } from '../../app/router.ts';
import type { GateInfo } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { number } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { GateMark } from '../../components/state.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';
import { GatePage } from './gate.tsx';

export function GatesPage({ path }: Location): VNode {
  const [, name] = path;
  return name === undefined ? <GateList /> : <GatePage key={name} name={name} />;
}

function GateList(): VNode {
  const loaded = useData((signal) => call('listGates', { query: { limit: 200 }, signal }), []);
  return (
    <Page
      title="Gates"
      lead="A gate stands before a dependency. It opens when the dependency is down: jobs wait, no attempt is lost, and probes find out when it is back."
    >
      <WhenLoaded from={loaded}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No gate was heard of">
              Jobs with a resource get one; a healthy gate may be missing here.
            </Empty>
          ) : (
            <Table caption="Gates" columns={columns} rows={items} rowKey={({ kind, name }) => `${kind} ${name}`} />
          )
        }
      </WhenLoaded>
    </Page>
  );
}

const columns: readonly Column<GateInfo>[] = [
  {
    title: 'Gate',
    kind: 'main',
    cell: ({ name, kind }) => (
      <>
        {kind === 'resource' ? (
          <a href={linkTo(['gates', name])}>
            <bdi>{name}</bdi>
          </a>
        ) : (
          <bdi>{name}</bdi>
        )}
        {kind !== 'resource' && (
          <div class="muted">soft gate of {kind === 'job' ? 'a job name' : 'a group of gates'}: it only judges</div>
        )}
      </>
    ),
  },
  { title: 'State', kind: 'tight', cell: (gate) => <GateMark gate={gate} /> },
  { title: 'Failing', kind: 'right', cell: ({ figures }) => ratio(figures) },
  { title: 'Waiting', kind: 'right', cell: ({ waiting }) => (waiting === null ? '–' : number(waiting)) },
  { title: 'Since', kind: 'tight', cell: ({ since }) => (since === null ? '–' : <Ago at={since} />) },
];

/** Of the runs of the last half minute. */
export function ratio({ alive, environment }: GateInfo['figures']): string {
  const runs = alive + environment;
  return runs === 0 ? '–' : `${number(environment)} of ${number(runs)}`;
}
