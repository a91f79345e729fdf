import type { VNode } from 'preact';
import { linkTo } from '../../app/router.ts';
import type { GateDetails, GateInfo } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { Action } from '../../components/action.tsx';
import { Facts, Tile } from '../../components/facts.tsx';
import { clock, moment, number } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { GateMark } from '../../components/state.tsx';
import { Table } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';
import { ratio } from './gates.tsx';
import { PhaseStrip } from './phase-strip.tsx';

type Order = 'openGate' | 'closeGate' | 'unpinGate' | 'resetGate';

const said: Readonly<Record<Order, string>> = {
  openGate: 'Pinned open: nothing of it starts, not even probes.',
  closeGate: 'Pinned closed: everything starts, and failures count.',
  unpinGate: 'The gate is back with its rules.',
  resetGate: 'The gate is closed, and has forgotten what it saw.',
};

export function GatePage({ name }: { readonly name: string }): VNode {
  const loaded = useData((signal) => call('getGate', { params: { name }, query: {}, signal }), [name]);
  const { data, reload } = loaded;
  const order = async (what: Order): Promise<string> => {
    await call(what, { params: { name }, body: {} });
    reload();
    return said[what];
  };
  return (
    <Page
      title={<bdi>{name}</bdi>}
      actions={data !== null && data.gate.kind === 'resource' && <Orders gate={data.gate} order={order} />}
    >
      <p>
        <a href={linkTo(['gates'])}>All gates</a>
      </p>
      <WhenLoaded from={loaded}>{(details) => <Details {...details} />}</WhenLoaded>
    </Page>
  );
}

function Orders({ gate, order }: { readonly gate: GateInfo; readonly order: (what: Order) => Promise<string> }): VNode {
  return (
    <>
      {gate.pin !== null && (
        <Action tone="primary" act={() => order('unpinGate')}>
          Unpin
        </Action>
      )}
      {gate.pin !== 'open' && <Action act={() => order('openGate')}>Pin open</Action>}
      {gate.pin !== 'closed' && <Action act={() => order('closeGate')}>Pin closed</Action>}
      <Action act={() => order('resetGate')}>Reset</Action>
    </>
  );
}

function isOpen({ phase, pin }: GateInfo): boolean {
  return pin === null && phase === 'open';
}

/** What to press, if anything. */
function advice({ phase, pin }: GateInfo): string {
  if (pin !== null) return 'It stays so until it is unpinned.';
  const pins = 'Pin open holds every job, probes too; pin closed starts every job, whatever fails.';
  if (phase === 'closed') return pins;
  return `Nothing has to be pressed: jobs start by themselves once it answers. ${pins}`;
}

function Details({ gate, explanation, history }: GateDetails): VNode {
  return (
    <>
      <div>
        <GateMark gate={gate} />
      </div>
      <section class="card stack">
        <h2>What it does now, and why</h2>
        {explanation.map((sentence) => (
          <p key={sentence}>
            <bdi>{sentence}</bdi>
          </p>
        ))}
        {gate.kind === 'resource' && <p class="muted">{advice(gate)}</p>}
        {gate.phase !== 'closed' && (
          <p>
            <a href={linkTo(['failures'], { since: '1h' })}>What jobs failed with in the last hour</a>
          </p>
        )}
      </section>
      <div class="tiles">
        <Tile label="Jobs that wait behind it" value={gate.waiting === null ? '–' : number(gate.waiting)} />
        <Tile label="Runs that found it down" value={ratio(gate.figures)} note="of the last 30 seconds" />
        <Tile
          label="Starts per second"
          value={
            isOpen(gate)
              ? 'probes only'
              : gate.rate.limit === null
                ? 'no bound'
                : number(Math.round(gate.rate.limit * 10) / 10)
          }
          note={`best lately: ${number(Math.round(gate.rate.peak * 10) / 10)}`}
        />
        <Tile
          label="Next start"
          value={gate.nextAt === null ? 'by hand only' : gate.nextAt <= gate.at ? 'at once' : <Ago at={gate.nextAt} />}
        />
      </div>
      <section class="card stack">
        <h2>State over time</h2>
        <PhaseStrip gate={gate} history={history} />
      </section>
      <section class="card stack">
        <h2>Figures</h2>
        <Facts
          facts={[
            ['Jobs that failed by it', number(gate.figures.distinctJobs)],
            ['Workers that see it fail', `${number(gate.figures.failingWorkers)} of ${number(gate.figures.workers)}`],
            ['Workers that fail alone', gate.suspectWorkers === 0 ? null : number(gate.suspectWorkers)],
            [
              'Retries it has saved up',
              `${number(Math.floor(gate.budget.tokens))} of ${number(Math.floor(gate.budget.cap))}`,
            ],
            ['Asked to be left alone until', gate.heldUntil === null ? null : moment(gate.heldUntil)],
            ['Down since', gate.downSince === null ? null : <Ago at={gate.downSince} />],
          ]}
        />
      </section>
      <section class="stack">
        <h2>History</h2>
        {history.length === 0 ? (
          <Empty title="Nothing happened in the last 30 days" />
        ) : (
          <Table
            caption="History of the gate"
            rows={history}
            rowKey={({ at, change, epoch }) => `${at} ${change} ${epoch}`}
            columns={[
              { title: 'When', kind: 'tight', cell: ({ at }) => <span title={moment(at)}>{clock(at)}</span> },
              { title: 'What', kind: 'tight', cell: ({ change }) => change },
              { title: 'From, to', kind: 'tight', cell: ({ from, to }) => (from === to ? to : `${from} → ${to}`) },
              { title: 'Rule', kind: 'main', cell: ({ rule }) => <bdi>{rule}</bdi> },
              { title: 'Failing', kind: 'right', cell: ({ figures }) => ratio(figures) },
              { title: 'Who', cell: ({ who }) => (who === null ? '–' : <bdi>{who}</bdi>) },
            ]}
          />
        )}
      </section>
    </>
  );
}
