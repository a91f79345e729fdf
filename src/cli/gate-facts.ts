import type { GateEvent } from '../gate/index.ts';
import type { GateDetails } from '../gates.ts';
import type { GateInfo } from '../observe/gate-info.ts';
import { count, rateWords, reasonWords, shortReason, startWords } from '../observe/gate-words.ts';
import { printable } from '../printable.ts';
import type { GateOrder } from '../store/store.ts';
import type { Output, Style } from './output.ts';
import { type Cell, factLines, tableLines } from './table.ts';
import { fromNow, pointInTime, span } from './time.ts';

export const phaseStyles: Readonly<Record<GateInfo['phase'], Style>> = { closed: 'green', open: 'red', ramp: 'yellow' };
const HISTORY_ROWS = 20;

export function gateListLines(gates: readonly GateInfo[], output: Output): string[] {
  return tableLines(
    [
      // Never cut: it is what a reader gives to `gates show`, and names of one parent begin alike.
      { title: 'gate' },
      { title: 'kind', dropRank: 1 },
      { title: 'state' },
      { title: 'since', dropRank: 2 },
      { title: 'next start', dropRank: 5 },
      { title: 'waiting', align: 'right', dropRank: 6 },
      { title: 'rate', align: 'right', dropRank: 3 },
      { title: 'why', gives: 'shortened', max: 60, dropRank: 4 },
    ],
    gates.map((gate): Cell[] => [
      gate.name,
      gate.kind,
      { text: stateText(gate), style: phaseStyles[gate.phase] },
      gate.since === null ? '-' : fromNow(gate.since, gate.at),
      nextText(gate),
      gate.waiting ?? '-',
      gate.rate.limit === null ? '-' : rateWords(gate.rate.limit),
      gate.reason === null ? '-' : shortReason(gate.reason),
    ]),
    output,
  );
}

export function stateText({ kind, phase, pin, heldUntil, budget }: GateInfo): string {
  const state = kind !== 'resource' && phase === 'open' ? 'outage' : phase;
  const retries = budget.isLow ? ', retries limited' : '';
  return `${state}${pin === null ? '' : ', pinned'}${heldUntil === null ? '' : ', held'}${retries}`;
}

/** Whether a reader who wonders about jobs should know of it. */
export function isNotable({ phase, pin, heldUntil, budget }: GateInfo): boolean {
  return phase !== 'closed' || pin !== null || heldUntil !== null || budget.isLow;
}

/** For the facts about a job. */
export function gateText(gate: GateInfo): string {
  const next = gate.kind === 'resource' && gate.phase !== 'closed' ? `, next start ${nextText(gate)}` : '';
  return `${stateText(gate)}${next} (mulligan gates show ${quoted(gate.name)})`;
}

export function nextText({ kind, phase, at, nextAt }: GateInfo): string {
  if (kind !== 'resource' || (phase === 'closed' && nextAt === at)) return '-';
  return nextAt === null ? 'never' : startWords(nextAt, at);
}

export function gateFacts({ gate, isKnown }: GateDetails, output: Output): string[] {
  const { at, figures, budget, kind } = gate;
  const isHard = kind === 'resource' && isKnown;
  const failed = `${figures.environment} of ${count(figures.alive + figures.environment, 'run')} failed`;
  const facts: [string, string | null][] = [
    ['gate', gate.name],
    ['kind', kind],
    ['state', stateText(gate)],
    ['since', gate.since === null ? null : pointInTime(gate.since, at)],
    ['last report', gate.heardAt === null ? 'not heard of lately' : pointInTime(gate.heardAt, at)],
    ['held until', gate.heldUntil === null ? null : pointInTime(gate.heldUntil, at)],
    ['next start', isHard && gate.phase !== 'closed' ? nextText(gate) : null],
    ['waiting', gate.waiting === null ? null : count(gate.waiting, 'job')],
    ['rate', isHard ? rateText(gate) : null],
    ['retry budget', isHard ? `${Math.max(0, Math.floor(budget.tokens))} of ${Math.floor(budget.cap)} retries` : null],
    ['last 30 s', isKnown ? `${failed}, streak ${figures.streak}, ${count(figures.workers, 'worker')}` : null],
  ];
  return factLines(
    facts.filter((fact): fact is [string, string] => fact[1] !== null),
    output,
  );
}

function rateText({ phase, pin, rate: { limit, peak } }: GateInfo): string {
  const proven = peak === 0 ? 'no peak proven yet' : `proven peak ${rateWords(peak)}`;
  if (phase === 'open') return `${pin === null ? 'probes only' : 'nothing'}, ${proven}`;
  return `${limit === null ? 'no limit' : `at most ${rateWords(limit)}`}, ${proven}`;
}

/** What happened to it, newest first, with the figures of each moment. */
export function historyLines(history: readonly GateEvent[], now: number, output: Output): string[] {
  if (history.length === 0) return [];
  const rows = history
    .slice(0, HISTORY_ROWS)
    .map((event): Cell[] => [
      event.at > now - 1_000 ? 'now' : `${span(now - event.at)} ago`,
      event.change,
      event.from === event.to ? event.to : `${event.from} -> ${event.to}`,
      reasonWords(event),
      figuresText(event),
    ]);
  const columns = [
    { title: 'when' },
    { title: 'change' },
    { title: 'state' },
    { title: 'why', gives: 'wrapping', max: 300 } as const,
    { title: 'figures of that moment', gives: 'wrapping', max: 200 } as const,
  ];
  const more = history.length - rows.length;
  return ['', ...tableLines(columns, rows, output), ...(more > 0 ? [`and ${more} earlier (--json prints them)`] : [])];
}

function figuresText({ figures }: GateEvent): string {
  const { alive, environment, streak, distinctJobs, failingWorkers, workers, peak, limit } = figures;
  const seen = `${environment} failed, ${alive} answered, streak ${streak}, ${count(distinctJobs, 'job')} or more`;
  const rate = limit === null ? `peak ${rateWords(peak)}` : `limit ${rateWords(limit)}, peak ${rateWords(peak)}`;
  return `${seen}, ${failingWorkers} of ${count(workers, 'worker')} failing, ${rate}`;
}

/** What an operator can do now; what can cost jobs comes last. */
export function adviceLines({ kind, name, pin, phase }: GateInfo, output: Output): string[] {
  const call = (order: GateOrder): string => `mulligan gates ${order} ${quoted(name)}`;
  const isResource = kind === 'resource';
  const all: [string, string, boolean][] = [
    [call('unpin'), `give it back to its rules${pin === 'open' ? ': probes, then a rising rate' : ''}`, pin !== null],
    [call('reset'), resetText(isResource), phase !== 'closed'],
    [call('open'), 'let nothing start until unpin, for example during maintenance', isResource && pin !== 'open'],
    [call('close'), CLOSE_TEXT, isResource && phase !== 'closed'],
  ];
  const advice = all.filter(([, , isUseful]) => isUseful).map(([what, why]): [string, string] => [what, why]);
  return advice.length === 0 ? [] : ['', output.paint('dim', 'what you can do'), ...factLines(advice, output)];
}

const CLOSE_TEXT = 'let everything start until unpin: no rule opens it, failures count, and jobs may die';

function resetText(isResource: boolean): string {
  return isResource
    ? 'if you know that it is well: close it now and forget what it saw; failures open it again'
    : 'forget what it saw';
}

export function orderedText(order: GateOrder, { kind, name, phase }: GateInfo): string {
  const gate = `${kind === 'resource' ? 'Gate' : `Soft gate (${kind})`} ${printable(name)}`;
  const until = `until mulligan gates unpin ${printable(quoted(name))}`;
  switch (order) {
    case 'open':
      return `${gate} is pinned open: nothing starts, not even probes, ${until}.`;
    case 'close':
      return `${gate} is pinned closed: everything starts, failures count and jobs may die, ${until}.`;
    case 'unpin':
      return `${gate} follows its rules again; it is ${phase} now${phase === 'open' ? probesText(name) : '.'}`;
    case 'reset':
      return `${gate} is closed and has forgotten what it saw.`;
  }
}

function probesText(name: string): string {
  const reset = printable(`mulligan gates reset ${quoted(name)}`);
  return `: probes come first, then a rising rate. If you know that it is well, ${reset} closes it at once.`;
}

/** Strangers choose keys, and a command that is shown is a command that is pasted. */
function quoted(name: string): string {
  return /^[\w.:@/-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}
