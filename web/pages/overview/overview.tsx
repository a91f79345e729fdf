import type { VNode } from 'preact';
import { type Location, linkTo, replaceQuery } from '../../app/router.ts';
import { type Counted, waitingIn } from '../../client/counts.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { Tile } from '../../components/facts.tsx';
import { cappedCount, number, percent } from '../../components/format.ts';
import { JobCell } from '../../components/job-cell.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { Ranges } from '../../components/ranges.tsx';
import { StateMark } from '../../components/state.tsx';
import { Table } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';
import { Attention } from './attention.tsx';
import { Backlog } from './backlog.tsx';
import { DueRetries, outlookWords, RetryShare, Throughput } from './charts.tsx';
import type { Concerns } from './concerns.ts';
import { Names } from './names.tsx';

const LATEST_DEAD = 5;
const ERRORS_LOOKED_AT = 20;
const ranges = [
  ['5m', '5 minutes'],
  ['1h', 'hour'],
  ['6h', '6 hours'],
  ['1d', 'day'],
  ['7d', '7 days'],
  ['30d', '30 days'],
] as const;

/** What is going on, and what needs a person. */
export function OverviewPage({ query }: Location): VNode {
  const range = ranges.find(([value]) => value === query.get('range'))?.[0] ?? '1h';
  const loaded = useData(
    async (signal) => {
      const [gates, { limits, busiest }, workers, queues, schedules, errors, latest, history, forecast] =
        await Promise.all([
          call('listGates', { query: { limit: 50 }, signal }),
          readLimits(signal),
          call('listWorkers', { signal }),
          call('listQueues', { signal }),
          call('listSchedules', { query: { limit: 200 }, signal }),
          call('listErrors', { query: { since: '10m', limit: ERRORS_LOOKED_AT }, signal }),
          call('listDead', { query: { limit: LATEST_DEAD }, signal }),
          call('getHistory', { query: { from: range }, signal }),
          call('getForecast', { query: {}, signal }),
        ]);
      const { ready, retrying, scheduled } = waitingIn(forecast.lanes, forecast);
      const { running } = forecast;
      const dead = { count: forecast.ended.dead, isExact: true };
      const concerns: Concerns = {
        gates: gates.items,
        limits,
        busiest,
        workers: workers.items,
        queues: queues.items,
        schedules: schedules.items,
        lanes: forecast.lanes,
        errors: errors.items,
        ready,
        running,
        dead,
      };
      return {
        counts: { ready, running, retrying, scheduled, dead },
        concerns,
        latest: latest.items,
        workers: workers.items,
        history,
        forecast,
      };
    },
    [range],
  );
  return (
    <Page
      title="Overview"
      actions={<Ranges ranges={ranges} chosen={range} choose={(value) => replaceQuery({ range: value })} />}
    >
      <WhenLoaded from={loaded}>
        {({ counts, concerns, latest, workers, history, forecast }) => (
          <>
            <Attention concerns={concerns} />
            <div class="tiles">
              <Tile
                label="Ready"
                value={shown(counts.ready)}
                note="due, not started"
                href={linkTo(['jobs'], { state: 'ready' })}
              />
              <Tile
                label="Running"
                value={shown(counts.running)}
                href={linkTo(['jobs'], { state: 'running' })}
                note="right now"
              />
              <Tile
                label="Retrying"
                value={shown(counts.retrying)}
                note="wait after a failure"
                href={linkTo(['jobs'], { state: 'retrying' })}
              />
              <Tile
                label="Scheduled"
                value={shown(counts.scheduled)}
                note="for later"
                href={linkTo(['jobs'], { state: 'scheduled' })}
              />
              <Tile label="Dead" value={shown(counts.dead)} note="need a person" href={linkTo(['failures'])} />
              <Tile
                label="Workers"
                value={number(workers.filter(({ alive }) => alive).length)}
                note="alive"
                href={linkTo(['workers'])}
              />
              <Tile
                label="Failed runs"
                value={history.total.runs === 0 ? '–' : percent(history.total.failed / history.total.runs)}
                note={`of ${number(history.total.runs)} in this time`}
              />
            </div>
            <div class="columns">
              <Throughput history={history} />
              <RetryShare history={history} />
              <DueRetries forecast={forecast} />
            </div>
            <section class="stack">
              <div class="card-head">
                <h2>Backlog</h2>
                <span class="muted">{outlookWords(forecast)}</span>
              </div>
              <Backlog lanes={forecast.lanes} />
            </section>
            <section class="stack">
              <h2>By job name, slowest first</h2>
              <Names names={history.names} />
            </section>
            {latest.length > 0 && (
              <section class="stack">
                <h2>Latest dead</h2>
                <Table
                  caption="Latest dead jobs"
                  rows={latest}
                  rowKey={({ id }) => id}
                  columns={[
                    {
                      title: 'Job',
                      kind: 'main',
                      cell: ({ id, name, lastError }) => (
                        <JobCell
                          id={id}
                          name={name}
                          detail={lastError === null ? '' : `${lastError.name}: ${lastError.message}`}
                        />
                      ),
                    },
                    {
                      title: 'Why',
                      kind: 'tight',
                      cell: ({ state, deadReason }) => <StateMark state={state} reason={deadReason} />,
                    },
                    { title: 'When', kind: 'tight', cell: ({ finishedAt, dueAt }) => <Ago at={finishedAt ?? dueAt} /> },
                  ]}
                />
              </section>
            )}
          </>
        )}
      </WhenLoaded>
    </Page>
  );
}

/** All limits, and the keys of the one behind which the most jobs wait. */
async function readLimits(signal: AbortSignal): Promise<Pick<Concerns, 'limits' | 'busiest'>> {
  const { items: limits } = await call('listLimits', { signal });
  const [most] = limits.filter(({ waiting }) => waiting > 0).sort((a, b) => b.waiting - a.waiting);
  if (most === undefined) return { limits, busiest: null };
  return { limits, busiest: await call('getLimit', { params: { name: most.name }, query: {}, signal }) };
}

function shown({ count, isExact }: Counted): string {
  return cappedCount(count, isExact);
}
