import type { LimitSummary } from '../../limits.ts';
import type { GateInfo } from '../../observe/gate-info.ts';
import { printable, shorten } from '../../printable.ts';
import type { ErrorGroup } from '../../store/store.ts';
import { nextText, phaseStyles, stateText } from '../gate-facts.ts';
import { errorText } from '../ledger.ts';
import { limitRateText } from '../limit-facts.ts';
import type { Output } from '../output.ts';
import { type Cell, type Column, tableLines } from '../table.ts';
import { fromNow, iso } from '../time.ts';
import { inStateColour, runningText } from '../worker-facts.ts';
import type { TopQueue, TopSnapshot } from './snapshot.ts';

/** From this width on, columns are shown that can be done without. */
const WIDE = 110;
/** A blank line, the title and the names of the columns. */
const LINES_ABOVE_ROWS = 3;

interface Section {
  readonly title: string;
  /** What is said when there are no rows. */
  readonly none: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
}

/** A frame: no line is wider and, in a terminal, no frame is higher than the output. `heading` stands on top. */
export function topLines(snapshot: TopSnapshot, heading: readonly string[], output: Output): string[] {
  const isWide = output.columns >= WIDE;
  const sections = [
    queueSection(snapshot.queues, isWide),
    gateSection(snapshot.gates, isWide),
    limitSection(snapshot.limits, isWide),
    errorSection(snapshot, isWide),
    workerSection(snapshot, isWide),
  ];
  const available = output.rows === 0 ? Number.POSITIVE_INFINITY : output.rows;
  const shown = fitRows(sections, available - heading.length);
  const lines = [
    ...heading.map((line) => shorten(printable(line), output.columns)),
    ...sections.flatMap((section, at) => sectionLines(section, shown[at] as number, output)),
  ];
  return lines.slice(0, available);
}

/** How many rows of each section fit: the longest gives way first, of equal ones the last, and each keeps one row. */
function fitRows(sections: readonly Section[], available: number): number[] {
  const shown = sections.map(({ rows }) => rows.length);
  const height = (rows: number): number => (rows === 0 ? LINES_ABOVE_ROWS - 1 : LINES_ABOVE_ROWS + rows);
  for (;;) {
    const excess = shown.reduce((sum, rows) => sum + height(rows), 0) - available;
    const longest = shown.lastIndexOf(Math.max(...shown));
    const rows = shown[longest] as number;
    if (excess <= 0 || rows <= 1) return shown;
    shown[longest] = rows - 1;
  }
}

function sectionLines({ title, none, columns, rows }: Section, shown: number, output: Output): string[] {
  if (rows.length === 0) return ['', shorten(`${title}: ${none}`, output.columns)];
  const part = shown < rows.length ? ` (${shown} of ${rows.length})` : '';
  return ['', output.paint('bold', `${title}${part}`), ...tableLines(columns, rows.slice(0, shown), output)];
}

const right = (title: string): Column => ({ title, align: 'right' });
const giving = (title: string, max: number): Column => ({ title, gives: 'shortened', max });

/** Keeps what is undefined in a narrow terminal out of a list. */
function present<T>(list: readonly (T | false)[]): T[] {
  return list.filter((one): one is T => one !== false);
}

function queueSection(queues: readonly TopQueue[], isWide: boolean): Section {
  // The busiest first: in a low terminal the others are not shown.
  const busy = ({ ready, retrying, running }: TopQueue): number => ready + retrying + running;
  const rows = [...queues].sort((a, b) => busy(b) - busy(a));
  return {
    title: 'Queues',
    none: 'none yet',
    columns: present([
      giving('queue', 60),
      { title: 'state' },
      right('ready'),
      right('retrying'),
      isWide && right('scheduled'),
      right('running'),
      right('dead'),
      right('done/s'),
      right('failed/s'),
    ]),
    rows: rows.map((one) =>
      present<Cell>([
        one.queue,
        one.paused ? { text: 'paused', style: 'yellow' } : '-',
        compact(one.ready),
        compact(one.retrying),
        isWide && compact(one.scheduled),
        compact(one.running),
        compact(one.dead),
        rate(one.completedPerSecond),
        { text: rate(one.failedPerSecond), ...((one.failedPerSecond ?? 0) > 0 && { style: 'yellow' }) },
      ]),
    ),
  };
}

function gateSection(gates: readonly GateInfo[], isWide: boolean): Section {
  return {
    title: 'Gates',
    none: 'all closed',
    columns: present([
      giving('gate', 60),
      { title: 'state' },
      isWide && { title: 'since' },
      { title: 'next start' },
      right('waiting'),
    ]),
    rows: gates.map((gate) =>
      present<Cell>([
        gate.name,
        { text: stateText(gate), style: phaseStyles[gate.phase] },
        isWide && (gate.since === null ? '-' : fromNow(gate.since, gate.at)),
        nextText(gate),
        gate.waiting === null ? '-' : compact(gate.waiting),
      ]),
    ),
  };
}

function limitSection(limits: readonly LimitSummary[], isWide: boolean): Section {
  return {
    title: 'Limits with waiting jobs',
    none: 'none',
    columns: present([
      giving('limit', 60),
      right('running'),
      right('total'),
      isWide && { title: 'rate of each key' },
      right('waiting'),
    ]),
    rows: limits.map((limit) =>
      present<Cell>([
        limit.name,
        compact(limit.running),
        limit.settings.total ?? '-',
        isWide && limitRateText(limit.settings),
        compact(limit.waiting),
      ]),
    ),
  };
}

function errorSection({ errors, at }: TopSnapshot, isWide: boolean): Section {
  return {
    title: 'Latest failures',
    none: 'none within an hour',
    columns: present([
      right('last seen'),
      right('failing'),
      right('dead'),
      { title: 'fingerprint' },
      isWide && giving('job', 40),
      giving('error', 200),
    ]),
    rows: errors.map((group) =>
      present<Cell>([
        fromNow(Math.min(group.lastSeenAt, at), at),
        compact(group.failing),
        compact(group.dead),
        group.fingerprint,
        isWide && jobOf(group),
        group.sample === null ? '-' : errorText(group.sample.error),
      ]),
    ),
  };
}

function jobOf({ names }: ErrorGroup): string {
  const more = names.length > 1 ? ` and ${names.length - 1} more` : '';
  return `${names[0]?.name ?? '-'}${more}`;
}

function workerSection({ workers, at }: TopSnapshot, isWide: boolean): Section {
  return {
    title: 'Workers',
    none: 'none has registered',
    columns: present([
      giving('worker', 60),
      { title: 'state' },
      isWide && { title: 'version' },
      right('running'),
      giving('queues', 40),
      right('seen'),
    ]),
    rows: workers.map((worker) =>
      present<Cell>([
        worker.id,
        inStateColour(worker, worker.state),
        isWide && (worker.version ?? '-'),
        runningText(worker),
        worker.queues.join(', '),
        fromNow(Math.min(worker.lastSeenAt, at), at),
      ]),
    ),
  };
}

/** At most six characters. */
function compact(count: number): string {
  if (count < 100_000) return String(count);
  return count < 10_000_000 ? `${Math.floor(count / 1_000)}k` : `${Math.floor(count / 1_000_000)}M`;
}

function rate(perSecond: number | null): string {
  if (perSecond === null) return '-';
  return perSecond > 0 && perSecond < 100 ? perSecond.toFixed(1) : compact(Math.round(perSecond));
}

/** The lines above the sections. */
export function headingOf(
  database: string,
  { at, queues, workers }: TopSnapshot,
  { keys, failure }: { readonly keys: string; readonly failure: string | null },
): string[] {
  const sum = (count: (queue: TopQueue) => number): string =>
    compact(queues.reduce((total, queue) => total + count(queue), 0));
  const waiting = sum(({ ready, retrying, scheduled }) => ready + retrying + scheduled);
  const alive = workers.filter(({ state }) => state === 'alive').length;
  return [
    ['mulligan top', ...(keys === '' ? [] : [keys]), iso(at), database].join('  '),
    `${waiting} waiting, ${sum(({ running }) => running)} running, ${sum(({ dead }) => dead)} dead; ` +
      `${alive} of ${workers.length} workers alive`,
    ...(failure === null ? [] : [`Could not be read again, so this is old: ${failure}`]),
  ];
}
