import { MINUTE_MS } from '../duration.ts';
import type { StoredError } from '../retry/outcome.ts';
import type { AnswerKind, GateKind } from '../simulate/index.ts';
import type { Errors } from './classification.ts';
import { type Life, type LifeRun, UNKNOWN } from './lives.ts';
import { quantile } from './tally.ts';

/*
 * The longest outage that the ledger has seen: minutes in a row in which half of the jobs or more did nothing but fail. Jobs
 * are counted, and not runs, so that a few that fail for ever do not look like one. It is described in the words of a scenario,
 * so that a simulation can replay it with another policy.
 */

/** Times in ms since the epoch. */
export interface OutageSpan {
  readonly from: number;
  readonly until: number;
}

export interface LedgerOutage extends OutageSpan {
  /** Of the runs that began in it, so many failed, and most of them like this. */
  readonly share: number;
  readonly answer: AnswerKind;
  /** Jobs that began per second, over the time around it. */
  readonly arrivalsPerSecond: number;
  /** How long a run took that completed. */
  readonly medianMs: number;
  readonly p99Ms: number;
  /** Apart from it: first runs that failed of jobs that completed, and jobs that never did. */
  readonly errorShare: number;
  readonly poisonShare: number;
  readonly gate: GateKind;
}

const LEAST_FAILURES = 5;
const FAILING_SHARE = 0.5;
/** Minutes without a run may lie between those of one outage. */
const LONGEST_GAP = 2;
/** So long before and after it the arrivals are counted. */
const AROUND_MS: number = 10 * MINUTE_MS;

interface Minute {
  jobs: number;
  failing: number;
}

export function longestOutage(lives: readonly Life[], errors: Errors, factor: number): LedgerOutage | null {
  const found = longestOf(outagesOf(lives));
  if (found === null) return null;
  const { from, until } = found;
  const inside = (at: number): boolean => at >= from && at < until;
  const runs = lives.flatMap((life) => life.runs.filter(({ startedAt }) => inside(startedAt)));
  const failures = runs.flatMap(({ error }) => error ?? []);
  const others = lives.filter((life) => !life.runs.some(({ startedAt }) => inside(startedAt)));
  const times = lives.flatMap((life) => life.runs.filter(({ result }) => result === 'completed').map(({ ms }) => ms));
  const arrived = lives.filter((life) => {
    const startedAt = life.runs[0]?.startedAt ?? 0;
    return startedAt >= from - AROUND_MS && startedAt < until + AROUND_MS;
  }).length;
  const shareOfOthers = (isMeant: (life: Life) => boolean): number =>
    others.length === 0 ? 0 : others.filter(isMeant).length / others.length;
  return {
    from,
    until,
    share: failures.length / Math.max(1, runs.length),
    answer: answerOf(errors[mostFrequent(failures)]),
    arrivalsPerSecond: (arrived * factor) / ((until - from + 2 * AROUND_MS) / 1_000),
    medianMs: Math.max(1, quantile(times, 0.5) ?? 1),
    p99Ms: Math.max(1, quantile(times, 0.99) ?? 1),
    errorShare: shareOfOthers(({ completed, firstFailureAt }) => completed && firstFailureAt !== null),
    poisonShare: shareOfOthers(({ completed }) => !completed),
    gate: gateOf(lives, runs),
  };
}

function minutesOf(lives: readonly Life[]): Map<number, Minute> {
  const minutes = new Map<number, Minute>();
  for (const { runs } of lives) {
    for (const [at, own] of Map.groupBy(runs, ({ startedAt }) => Math.floor(startedAt / MINUTE_MS))) {
      const minute = minutes.get(at) ?? { jobs: 0, failing: 0 };
      minute.jobs++;
      if (own.every(({ error }) => error !== null)) minute.failing++;
      minutes.set(at, minute);
    }
  }
  return minutes;
}

/** All stretches of failing minutes, in order of time. */
export function outagesOf(lives: readonly Life[]): OutageSpan[] {
  const found: { first: number; last: number; failures: number }[] = [];
  let open: (typeof found)[number] | null = null;
  for (const [at, { jobs, failing }] of [...minutesOf(lives)].sort(([a], [b]) => a - b)) {
    if (failing < FAILING_SHARE * jobs) {
      open = null;
      continue;
    }
    if (open === null || at - open.last > LONGEST_GAP) {
      open = { first: at, last: at, failures: 0 };
      found.push(open);
    }
    open.last = at;
    open.failures += failing;
  }
  return found
    .filter(({ failures }) => failures >= LEAST_FAILURES)
    .map(({ first, last }) => ({ from: first * MINUTE_MS, until: (last + 1) * MINUTE_MS }));
}

/** Of two that are as long, the later. */
function longestOf(outages: readonly OutageSpan[]): OutageSpan | null {
  return outages.reduce<OutageSpan | null>(
    (longest, one) => (longest === null || one.until - one.from >= longest.until - longest.from ? one : longest),
    null,
  );
}

function mostFrequent(groups: readonly string[]): string {
  const [first] = [...Map.groupBy(groups, (group) => group)].sort(([, a], [, b]) => b.length - a.length);
  return first?.[0] ?? UNKNOWN;
}

/** The answer of a modelled dependency that throws an error of the same class. */
function answerOf(error: StoredError | undefined): AnswerKind {
  const { name, code = null, status = null } = error ?? {};
  if (status === 429) return 'too-many';
  if (status !== null && status >= 500) return 'unavailable';
  if (name === 'TimeoutError' || /TIMEOUT|TIMEDOUT|ECONNABORTED/.test(code ?? '')) return 'timeout';
  return /^E(CONN|PIPE|HOST|NET|NOTFOUND|AI_)|^UND_ERR/.test(code ?? '') ? 'refused' : 'bug';
}

function gateOf(lives: readonly Life[], runs: readonly LifeRun[]): GateKind {
  if (lives.some(({ resource }) => resource !== null)) return 'resource';
  return runs.some(({ result, error }) => result === 'uncounted' && error !== null) ? 'soft' : 'none';
}
