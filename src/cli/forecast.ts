import type { Mulligan } from '../mulligan.ts';
import type { Forecast, ForecastMinute, Outlook } from '../observe/forecast.ts';
import type { GateInfo } from '../observe/gate-info.ts';
import { count } from '../observe/gate-words.ts';
import type { RegisteredWorker } from '../store/store.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { countText, grouped } from './figures.ts';
import { given } from './flags.ts';
import { stateText } from './gate-facts.ts';
import type { Output } from './output.ts';
import { plotBars } from './plot.ts';
import { factLines, tableLines } from './table.ts';
import { span } from './time.ts';

const MINUTES_IN_A_ROW = 5;
const PLOT_WIDTH = 40;

interface ForecastFlags {
  readonly queue?: string;
}

export function addForecast(program: CliCommand, shell: Shell): void {
  program
    .command('forecast')
    .description('What waits, which retries fall due within the next hour, and when the backlog will be empty.')
    .option('--queue <queue>', 'only jobs that wait in this queue')
    .addHelpText(
      'after',
      '\nA + marks a number as a lower bound: counting stops where it would read too many jobs.' +
        '\nWith --json: { now, isComplete, backlog, running, ended, lanes, retries, series, arrivedPerMinute, endedPerMinute, outlook, emptyAt }.',
    )
    .action((flags: ForecastFlags) => forecast(shell, flags));
}

async function forecast({ output, ...shell }: Shell, { queue }: ForecastFlags): Promise<void> {
  const { answer, causes } = await withExisting(shell.database(), async (mulligan) => {
    const answer = await mulligan.forecast(given('queue', queue));
    const isExplained = answer.outlook === 'stalled' && !output.isJson;
    return { answer, causes: isExplained ? await causesOf(mulligan, queue) : [] };
  });
  output.answer(answer, () => forecastLines(answer, output, causes));
}

async function causesOf({ workers, gates }: Mulligan, queue: string | undefined): Promise<string[]> {
  const [known, heardOf] = await Promise.all([workers.list(), gates.list({ kind: 'resource' })]);
  return stallCauses(known, heardOf, queue);
}

/** Why no due job starts, as far as workers and gates can tell. */
export function stallCauses(
  workers: readonly Pick<RegisteredWorker, 'alive' | 'queues'>[],
  gates: readonly GateInfo[],
  queue?: string,
): string[] {
  const serves = workers.some(({ alive, queues }) => alive && (queue === undefined || queues.includes(queue)));
  // An open gate lets probes through, and no more than that.
  const holding = gates.filter(
    ({ waiting, nextAt, at, phase, pin }) =>
      (waiting ?? 0) > 0 && (nextAt !== at || (phase === 'open' && pin === null)),
  );
  return [
    ...(serves ? [] : [`no registered worker${queue === undefined ? '' : ` of queue ${queue}`} is alive`]),
    ...holding.map((gate) => `gate ${gate.name} is ${stateText(gate)}: ${count(gate.waiting ?? 0, 'job')} behind it`),
  ];
}

export function forecastLines(answer: Forecast, output: Output, causes: readonly string[] = []): string[] {
  return [
    ...backlogLines(answer, causes, output),
    ...laneLines(answer, output),
    ...retryLines(answer, output),
    ...seriesLines(answer, output),
    ...(answer.isComplete ? [] : ['', 'Not all resources, names and keys were read: there are too many.']),
  ];
}

const outlooks: Readonly<Record<Outlook, string>> = {
  empty: 'no due job waits',
  draining: 'empty',
  growing: 'grows: as many jobs come as end, or more',
  stalled: 'stalled: no job has ended in the last 5 minutes',
};

function backlogLines(answer: Forecast, causes: readonly string[], output: Output): string[] {
  const { now, backlog, outlook, emptyAt, arrivedPerMinute, endedPerMinute } = answer;
  const when =
    outlook === 'draining' && emptyAt !== null
      ? `${outlooks.draining} in ${backlog.isExact ? '' : 'at least '}${span(emptyAt - now)}, at the present rate`
      : outlooks[outlook];
  return factLines(
    [
      ['backlog', `${countText(backlog)} due, ${countText(answer.running)} running`],
      ['outlook', when],
      ...causes.map((cause, index) => [index === 0 ? 'because' : '', cause] as const),
      ['rates', `${rate(arrivedPerMinute)} enqueued, ${rate(endedPerMinute)} ended per minute, over the last 5`],
    ],
    output,
  );
}

function rate(perMinute: number): string {
  return perMinute.toLocaleString('en', { maximumFractionDigits: perMinute < 10 ? 1 : 0 });
}

function laneLines({ lanes, now }: Forecast, output: Output): string[] {
  if (lanes.length === 0) return [];
  const right = { align: 'right' } as const;
  const columns = [
    { title: 'queue', gives: 'shortened', max: 40 } as const,
    { title: 'lane' },
    { title: 'due', ...right },
    { title: 'oldest', ...right },
    { title: 'later', ...right },
  ];
  const rows = lanes.map(({ queue, lane, due, later, oldestDueAt }) => [
    queue,
    lane,
    countText(due),
    oldestDueAt === null ? '-' : span(now - oldestDueAt),
    countText(later),
  ]);
  return ['', ...tableLines(columns, rows, output)];
}

function retryLines({ retries }: Forecast, output: Output): string[] {
  if (retries.every(({ count }) => count === 0)) return ['', 'No retry falls due within the next hour.'];
  const rows = Array.from({ length: Math.ceil(retries.length / MINUTES_IN_A_ROW) }, (_, row) =>
    retries.slice(row * MINUTES_IN_A_ROW, (row + 1) * MINUTES_IN_A_ROW),
  );
  const totals = rows.map(expected);
  const bars = plotBars(
    totals.map((total) => ({ minMs: total, maxMs: total, sampleMs: total })),
    PLOT_WIDTH,
  );
  const columns = [{ title: 'minutes' }, { title: 'retries due', align: 'right' } as const, { title: '' }];
  const cells = rows.map((minutes, row) => {
    const from = row * MINUTES_IN_A_ROW;
    const isExact = minutes.every((minute) => minute.isExact);
    const total = grouped(totals[row] ?? 0);
    return [`${from}-${from + minutes.length}`, isExact ? total : `~${total}`, bars[row] ?? ''];
  });
  return ['', ...tableLines(columns, cells, output)];
}

function expected(minutes: readonly ForecastMinute[]): number {
  return minutes.reduce((sum, minute) => sum + minute.expected, 0);
}

function seriesLines({ series }: Forecast, output: Output): string[] {
  if (series.length === 0) return [];
  const columns = [
    { title: 'resource', gives: 'shortened', max: 40 } as const,
    { title: 'name', gives: 'shortened', max: 40 } as const,
    { title: 'within the hour', align: 'right' } as const,
    { title: 'busiest minute', align: 'right' } as const,
  ];
  const rows = series.map(({ resource, name, total, minutes }) => {
    const most = Math.max(...minutes);
    const text = total.isExact ? countText(total) : `~${grouped(total.expected)}`;
    return [resource ?? '-', name, text, `${grouped(most)} in minute ${minutes.indexOf(most)}`];
  });
  return ['', ...tableLines(columns, rows, output)];
}
