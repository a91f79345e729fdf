import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { PolicyRun, Scenario, SimulatedPolicy, SimulationResult } from '../../../src/simulate/index.ts';
import { asApiError } from '../../client/use-data.ts';
import { Chart, type Series } from '../../components/chart.tsx';
import { count, number, span } from '../../components/format.ts';
import { Notice } from '../../components/notice.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { toast } from '../../components/toasts.tsx';
import { type Draft, optionsOf } from './policy.ts';
import { scenarios } from './scenarios.ts';

type Module = typeof import('./simulator.ts');

const MINE = 'this policy';
/** What it may be compared with: each with a gate unless it says otherwise. */
const rivals = ['standard', 'patient', 'no-gate'] as const;
const dashes = [undefined, [6, 4], [2, 3], [10, 3, 2, 3]] as const;

/** The real workers, gates and store of this package, in the browser, on a clock of their own. */
export function Simulation({ draft }: { readonly draft: Draft }): VNode {
  const [module, setModule] = useState<Module | null>(null);
  const [scenario, setScenario] = useState(Object.keys(scenarios)[0] as string);
  const [others, setOthers] = useState<readonly string[]>(['no-gate']);
  const [done, setDone] = useState<number | null>(null);
  const [result, setResult] = useState<SimulationResult | null>(null);
  const ended = useRef(new AbortController());
  useEffect(() => {
    // A file of its own: most visits do not need it.
    void import('./simulator.ts').then(setModule);
    return () => ended.current.abort();
  }, []);

  const run = async (): Promise<void> => {
    if (module === null) return;
    const mine: SimulatedPolicy = { name: MINE, retry: optionsOf(draft) };
    setDone(0);
    try {
      const policies = [mine, ...rivals.filter((name) => others.includes(name))];
      const onProgress = (progress: { readonly done: number }): void => setDone(progress.done);
      setResult(
        await module.simulate(scenarios[scenario] as Scenario, { policies, onProgress, signal: ended.current.signal }),
      );
    } catch (error) {
      if (!ended.current.signal.aborted) toast(asApiError(error).message, 'bad');
    } finally {
      setDone(null);
    }
  };
  return (
    <section class="card stack">
      <h2>In an outage</h2>
      <p class="muted">
        Jobs arrive, and what they depend on fails. The workers and gates that run are those of this package, on a fast
        clock.
      </p>
      <div class="fields">
        <label class="field">
          <span>What happens</span>
          <select value={scenario} onChange={(event) => setScenario(event.currentTarget.value)}>
            {Object.keys(scenarios).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <fieldset class="plain-fieldset actions">
          <legend class="visually-hidden">Compare with</legend>
          {rivals.map((name) => (
            <label key={name} class="choice">
              <input
                type="checkbox"
                checked={others.includes(name)}
                onChange={() =>
                  setOthers(others.includes(name) ? others.filter((one) => one !== name) : [...others, name])
                }
              />
              {name}
            </label>
          ))}
        </fieldset>
        <button
          type="button"
          class="button primary"
          disabled={module === null || done !== null}
          onClick={() => void run()}
        >
          {done === null ? 'Simulate' : `Simulating, ${Math.round(done * 100)} %`}
        </button>
      </div>
      {result !== null && <Result result={result} />}
    </section>
  );
}

function Result({ result }: { readonly result: SimulationResult }): VNode {
  const { runs, stepMs, scenario } = result;
  const steps = runs[0]?.series.calls.length ?? 0;
  const at = Array.from({ length: steps }, (_, index) => (index * stepMs) / 60_000);
  const lines = (values: (run: PolicyRun) => readonly number[]): Series[] =>
    runs.map((run, index) => ({
      title: run.policy.name,
      colour: (index + 1) as Series['colour'],
      values: values(run),
      ...(dashes[index] && { dash: dashes[index] }),
    }));
  const minutes = (value: number): string => `${Number(value.toFixed(1))} min`;
  const { dependency } = scenario;
  return (
    <>
      {dependency.outages.length > 0 && (
        <Notice tone="calm" title={count(dependency.outages.length, 'outage')}>
          <p>
            {dependency.outages
              .slice(0, 3)
              .map(({ fromMs, untilMs }) => `from ${span(fromMs)} to ${span(untilMs)}`)
              .join('; ')}
          </p>
        </Notice>
      )}
      <Table
        caption="What became of the jobs, by policy"
        columns={columns}
        rows={runs}
        rowKey={({ policy }) => policy.name}
      />
      <div class="columns">
        <div class="stack">
          <h3>Calls to the dependency per second</h3>
          <Chart
            label="Calls per second by policy"
            at={at}
            x={minutes}
            y={number}
            series={lines(({ series }) => series.calls.map((calls) => calls / (stepMs / 1_000)))}
          />
        </div>
        <div class="stack">
          <h3>Jobs that wait</h3>
          <Chart
            label="Backlog by policy"
            at={at}
            x={minutes}
            y={number}
            series={lines(({ series }) => backlogOf(series.backlog))}
          />
        </div>
      </div>
    </>
  );
}

function backlogOf(backlog: PolicyRun['series']['backlog']): number[] {
  const lanes = Object.values(backlog);
  return (lanes[0] ?? []).map((_, index) => lanes.reduce((sum, lane) => sum + (lane[index] ?? 0), 0));
}

const columns: readonly Column<PolicyRun>[] = [
  { title: 'Policy', kind: 'main', cell: ({ policy }) => policy.name },
  { title: 'Completed', kind: 'right', cell: ({ figures }) => number(figures.completed) },
  { title: 'Dead', kind: 'right', cell: ({ figures }) => number(figures.dead) },
  { title: 'Calls while down', kind: 'right', cell: ({ figures }) => number(figures.callsInOutage) },
  { title: 'Attempts burnt', kind: 'right', cell: ({ figures }) => number(figures.attemptsBurnt) },
  { title: 'Busiest, against healthy', kind: 'right', cell: ({ figures }) => `${figures.peakOverHealthy} times` },
  {
    title: 'As before after',
    kind: 'right',
    cell: ({ figures }) => (figures.recoveredAfterMs === null ? '–' : span(figures.recoveredAfterMs)),
  },
];
