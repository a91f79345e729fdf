import { systemClock } from '../clock.ts';
import type { LimitSettings } from '../limit/limit.ts';
import type { LimitDetails, LimitSummary } from '../limits.ts';
import { count } from '../observe/gate-words.ts';
import { limitRateWords } from '../observe/limit-holds.ts';
import { printable } from '../printable.ts';
import type { LimitKeyInfo, LimitOverride } from '../store/store.ts';
import type { Output } from './output.ts';
import { type Cell, factLines, tableLines } from './table.ts';
import { fromNow } from './time.ts';

const BY_KEY = 'by key';
const EMPTY_KEY = '""';

export function limitListLines(limits: readonly LimitSummary[], output: Output): string[] {
  return tableLines(
    [
      { title: 'limit', gives: 'shortened', max: 60 },
      { title: 'concurrency', align: 'right' },
      { title: 'total', align: 'right' },
      { title: 'rate' },
      { title: 'running', align: 'right' },
      { title: 'waiting', align: 'right' },
      { title: 'set by hand' },
    ],
    limits.map((limit): Cell[] => [
      limit.name,
      isByKey(limit) ? BY_KEY : (limit.settings.concurrency ?? '-'),
      limit.settings.total ?? '-',
      limitRateText(limit.settings),
      limit.running,
      limit.waiting,
      setOfAllText(limit),
    ]),
    output,
  );
}

export function limitFacts({ name, code, set, running, waiting, keysSet }: LimitSummary, output: Output): string[] {
  return factLines(
    [
      ['limit', name],
      ['in code', code === null ? 'nothing' : overrideText({ concurrency: BY_KEY, ...code })],
      ['set by hand', set === null ? 'nothing' : overrideText(set)],
      ['keys set by hand', String(keysSet)],
      ['running', String(running)],
      ['waiting', String(waiting)],
    ],
    output,
  );
}

export function keyListLines({ limit, keys }: LimitDetails, output: Output): string[] {
  if (keys.length === 0) return ['', 'No key is in use.'];
  const now = systemClock.now();
  // A limit without a key function has '' as its only key; a concurrency is computed only where there is such a function.
  const emptyKey = keys.length === 1 && !isComputed(limit) ? '(all jobs)' : EMPTY_KEY;
  const rows = keys.map((one): Cell[] => [
    one.key === '' ? emptyKey : one.key,
    one.running,
    one.waiting,
    isByKey(limit, one) ? BY_KEY : (one.settings.concurrency ?? '-'),
    limitRateText(one.settings),
    one.startsAt === null ? '-' : fromNow(Math.max(now, one.startsAt), now),
    setText(one.set),
  ]);
  const columns = [
    { title: 'key', gives: 'shortened', max: 80 } as const,
    { title: 'running', align: 'right' } as const,
    { title: 'waiting', align: 'right' } as const,
    { title: 'concurrency', align: 'right' } as const,
    { title: 'rate' },
    { title: 'next by rate' },
    { title: 'set by hand' },
  ];
  return ['', ...tableLines(columns, rows, output)];
}

/** What holds after a change. */
export function changedText(limit: LimitSummary, key: LimitKeyInfo | null): string {
  const what = key === null ? `Limit ${limit.name}` : `Key ${key.key || EMPTY_KEY} of limit ${limit.name}`;
  const { settings, set } = key ?? limit;
  const allowed = overrideText(isByKey(limit, key) ? { ...settings, concurrency: BY_KEY } : settings);
  const source = set === null ? nothingSetText(limit, key) : `set by hand: ${overrideText(set)}`;
  const keys =
    key === null && limit.keysSet > 0
      ? ` ${count(limit.keysSet, 'key')} of it ${limit.keysSet === 1 ? 'is' : 'are'} still set by hand: mulligan limits show ${limit.name}.`
      : '';
  return printable(`${what} allows ${allowed} (${source}). Jobs that run go on.${keys}`);
}

function nothingSetText({ set }: LimitSummary, key: LimitKeyInfo | null): string {
  if (key === null) return 'nothing is set by hand';
  const ofLimit = set === null ? '' : `; the limit is set by hand: ${overrideText(set)}`;
  return `nothing is set by hand for this key${ofLimit}`;
}

/** No rule has a concurrency for the limit, or for this key: code computes it for each key, at enqueue. */
function isByKey(limit: LimitSummary, key: LimitKeyInfo | null = null): boolean {
  return isComputed(limit) && [limit.set, key?.set, key?.code].every((rule) => rule?.concurrency === undefined);
}

function isComputed({ code }: LimitSummary): boolean {
  return code !== null && code.concurrency === undefined;
}

type ShownSettings = Omit<LimitOverride, 'concurrency'> & { readonly concurrency?: number | null | typeof BY_KEY };

function overrideText({ concurrency, total, rate }: ShownSettings): string {
  const parts = [
    ...(concurrency === undefined ? [] : [`concurrency ${concurrency ?? 'unbounded'}`]),
    ...(total === undefined ? [] : [`total ${total ?? 'unbounded'}`]),
    ...(rate === undefined ? [] : [`rate ${rate === null ? 'unbounded' : limitRateWords(rate)}`]),
  ];
  return parts.join('; ');
}

export function limitRateText({ rate }: LimitSettings): string {
  return rate === null ? '-' : limitRateWords(rate);
}

function setOfAllText({ set, keysSet }: LimitSummary): string {
  const parts = [...(set === null ? [] : [overrideText(set)]), ...(keysSet === 0 ? [] : [count(keysSet, 'key')])];
  return parts.length === 0 ? '-' : parts.join('; ');
}

function setText(set: LimitOverride | null): string {
  return set === null ? '-' : overrideText(set);
}
