import type { VNode } from 'preact';
import type { Operations } from '../../client/operations.ts';
import { Chart } from '../../components/chart.tsx';
import { count, number, percent, relative } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';

type History = Operations['getHistory']['answer'];
type Forecast = Operations['getForecast']['answer'];

/** Above this share of all runs, retries are a load of their own. */
const RETRY_BOUND = 0.1;
const LEAST_MS = 30_000;

/** Runs, failures and retries per second. */
export function Throughput({ history }: { readonly history: History }): VNode {
  const { points, total } = history;
  const at = points.map((point) => point.at / 1_000);
  const perSecond = (pick: 'runs' | 'failed' | 'retries'): number[] =>
    points.map((point) => point[pick] / secondsOf(point.at, history));
  return (
    <section class="card stack">
      <div class="card-head">
        <h2>Per second</h2>
        <span class="muted">
          {count(total.runs, 'run')}, {number(total.failed)} failed, {count(total.retries, 'retry', 'retries')}
        </span>
      </div>
      <Chart
        label={`Per second: ${total.runs} runs, ${total.failed} failures and ${total.retries} retries in all`}
        at={at}
        y={rateText}
        series={[
          { title: 'Runs', colour: 1, values: perSecond('runs') },
          { title: 'Failures', colour: 2, dash: [6, 4], values: perSecond('failed') },
          { title: 'Retries', colour: 3, dash: [2, 3], values: perSecond('retries') },
        ]}
      />
    </section>
  );
}

export function RetryShare({ history: { points, total } }: { readonly history: History }): VNode {
  const share = total.runs === 0 ? 0 : total.retries / total.runs;
  return (
    <section class="card stack">
      <div class="card-head">
        <h2>Share of retries</h2>
        <span class="muted">
          {percent(share)} of all runs{share > RETRY_BOUND ? ': above its line' : ''}
        </span>
      </div>
      <Chart
        label={`Share of retries among runs: ${percent(share)} in all; the line is at ${percent(RETRY_BOUND)}`}
        at={points.map((point) => point.at / 1_000)}
        y={percent}
        line={{ at: RETRY_BOUND, title: `${percent(RETRY_BOUND)}: more is a load of its own` }}
        series={[
          {
            title: 'Retries, of all runs',
            colour: 3,
            values: points.map(({ runs, retries }) => (runs === 0 ? null : retries / runs)),
          },
        ]}
      />
    </section>
  );
}

/** How many retries fall due in each of the next minutes, and when the backlog will be gone. */
export function DueRetries({ forecast }: { readonly forecast: Forecast }): VNode {
  const sum = forecast.retries.reduce((total, { expected }) => total + expected, 0);
  return (
    <section class="card stack">
      <div class="card-head">
        <h2>Retries due in the next hour</h2>
        <span class="muted">
          {forecast.retries.some(({ isExact }) => !isExact) ? 'about ' : ''}
          {count(sum, 'retry', 'retries')}
        </span>
      </div>
      {sum === 0 && <Empty title="None">No retry waits for its time.</Empty>}
      {sum > 0 && (
        <Chart
          label={`${sum} retries fall due in the next hour`}
          at={forecast.retries.map(({ at }) => at / 1_000)}
          y={(value) => (Number.isInteger(value) ? number(value) : '')}
          kind="steps"
          series={[
            {
              title: 'Retries that fall due, by minute',
              colour: 4,
              values: forecast.retries.map(({ expected }) => expected),
            },
          ]}
        />
      )}
    </section>
  );
}

export function outlookWords({ outlook, emptyAt, now, arrivedPerMinute, endedPerMinute }: Forecast): string {
  const rates = `${rateText(arrivedPerMinute)} come and ${rateText(endedPerMinute)} end per minute`;
  switch (outlook) {
    case 'empty':
      return `nothing is due; ${rates}`;
    case 'draining':
      return emptyAt === null ? `draining; ${rates}` : `empty ${relative(emptyAt, now)} at this rate; ${rates}`;
    case 'growing':
      return `growing: ${rates}`;
    case 'stalled':
      return `stalled: ${rates}`;
  }
}

/** The last step is not over yet: it is divided by the part of it that is, unless that is too short to tell. */
function secondsOf(at: number, { stepMs, now }: History): number {
  return Math.max(LEAST_MS, Math.min(stepMs, now - at)) / 1_000;
}

function rateText(value: number): string {
  return value >= 10 ? number(Math.round(value)) : String(Number(value.toPrecision(2)));
}
