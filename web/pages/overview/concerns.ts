import { endangersLeases } from '../../../src/store/workers.ts';
import { linkTo } from '../../app/router.ts';
import type {
  ErrorGroup,
  GateInfo,
  LimitDetails,
  LimitSummary,
  QueueInfo,
  RegisteredWorker,
  ScheduleInfo,
} from '../../client/answers.ts';
import type { Counted } from '../../client/counts.ts';
import type { Operations } from '../../client/operations.ts';
import { count, number, short, span } from '../../components/format.ts';
import { errorTitle } from '../failures/title.ts';
import { missingOf } from '../workers/missing.ts';

export interface Concerns {
  readonly gates: readonly GateInfo[];
  readonly limits: readonly LimitSummary[];
  /** The limit behind which the most jobs wait. */
  readonly busiest: LimitDetails | null;
  readonly workers: readonly RegisteredWorker[];
  readonly queues: readonly QueueInfo[];
  readonly schedules: readonly ScheduleInfo[];
  readonly lanes: Operations['getForecast']['answer']['lanes'];
  /** What jobs failed with lately, the worst first. */
  readonly errors: readonly ErrorGroup[];
  readonly ready: Counted;
  readonly running: Counted;
  readonly dead: Counted;
}

export interface Concern {
  /** The same while what is said of it changes. */
  readonly about: string;
  readonly text: string;
  readonly href: string;
  readonly isBad: boolean;
  /** When it began, if that is known. */
  readonly since: number | null;
}

const LATE_MS = 60_000;
const MOST_ERRORS = 3;
/** Fewer jobs that will be retried are what retries are for. */
const MANY_FAILING = 5;

/** What a person should look at, the worst first. */
export function concernsOf(concerns: Concerns, now: number): Concern[] {
  return worstFirst([
    ...workerConcerns(concerns),
    ...concerns.gates.flatMap(gateConcern),
    ...worstFirst(concerns.errors.flatMap(errorConcern)).slice(0, MOST_ERRORS),
    ...concerns.schedules.flatMap((schedule) => scheduleConcern(schedule, now)),
    ...queueConcerns(concerns),
    ...limitConcerns(concerns),
    ...leftConcerns(concerns),
  ]);
}

function worstFirst(concerns: readonly Concern[]): Concern[] {
  return concerns.toSorted((a, b) => Number(b.isBad) - Number(a.isBad));
}

function concern(
  isBad: boolean,
  about: string,
  text: string,
  href: string,
  since: number | null = null,
): readonly Concern[] {
  return [{ isBad, about, text, href, since }];
}

function workerConcerns({ workers, ready }: Concerns): readonly Concern[] {
  const href = linkTo(['workers']);
  const blocked = workers.filter((worker) => worker.alive && endangersLeases(worker));
  if (blocked.length > 0) {
    const longest = span(Math.max(...blocked.map(({ loopDelayMs }) => loopDelayMs ?? 0)));
    const text = `${count(blocked.length, 'worker')} blocked the event loop for up to ${longest}: leases are in danger.`;
    return concern(true, 'event loops', text, href);
  }
  if (ready.count === 0 || workers.some(({ alive }) => alive)) return [];
  const text = `No worker is alive, and ${atLeast(ready, 'job waits', 'jobs wait')}.`;
  return concern(true, 'workers', text, href);
}

function gateConcern({ kind, name, phase, pin, waiting, downSince }: GateInfo): readonly Concern[] {
  if (kind !== 'resource') return [];
  const held = waiting === null || waiting === 0 ? '' : `; ${count(waiting, 'job waits', 'jobs wait')} behind it`;
  const [title, about, href] = [`Gate ${short(name, 80)}`, `gate ${name}`, linkTo(['gates', name])];
  if (pin !== null) return concern(false, about, `${title} is pinned ${pin}${held}.`, href);
  if (phase === 'open')
    return concern(true, about, `${title} is open: its dependency is down${held}.`, href, downSince);
  if (phase === 'ramp') return concern(false, about, `${title} is ramping up after an outage${held}.`, href, downSince);
  return [];
}

function errorConcern(group: ErrorGroup): readonly Concern[] {
  const { fingerprint, names, failing, dead, failures, sample, firstSeenAt } = group;
  const [worst, ...others] = names;
  if (worst === undefined || dead + failing === 0) return [];
  const about = `error ${fingerprint}`;
  if (sample?.error.code === 'CRASHED') {
    const text = `Worker processes die: ${count(failures, 'run')} crashed. First suspect: ${short(worst.name, 80)}.`;
    const query = others.some((other) => other.dead + other.failing > 0) ? {} : { name: worst.name };
    return concern(true, about, text, linkTo(['failures', fingerprint], query), firstSeenAt);
  }
  if (dead === 0 && failing < MANY_FAILING) return [];
  const more = others.length === 0 ? '' : ` and ${count(others.length, 'other')}`;
  const message = sample === null ? '' : `: ${short(sample.error.message, 120)}`;
  const counts = [
    ...(dead > 0 ? [`${number(dead)} dead`] : []),
    ...(failing > 0 ? [`${number(failing)} will be retried`] : []),
  ];
  const text = `${short(worst.name, 80)}${more}: ${errorTitle(group)}${message}; ${counts.join(', ')}.`;
  const query = others.length === 0 ? { name: worst.name } : {};
  return concern(dead > 0, about, text, linkTo(['failures', fingerprint], query), firstSeenAt);
}

function scheduleConcern({ name, nextAt, paused }: ScheduleInfo, now: number): readonly Concern[] {
  const [title, about, href] = [`Schedule ${short(name, 80)}`, `schedule ${name}`, linkTo(['schedules'])];
  if (paused) return concern(false, about, `${title} is paused.`, href);
  if (nextAt === null || now - nextAt <= LATE_MS) return [];
  return concern(true, about, `${title} is late: no worker fires it.`, href, nextAt);
}

function queueConcerns({ queues, workers, lanes }: Concerns): readonly Concern[] {
  const alive = workers.filter((worker) => worker.alive);
  const paused = queues
    .filter((one) => one.paused)
    .flatMap(({ queue }) =>
      concern(false, `pause ${queue}`, `Queue ${short(queue, 80)} is paused.`, linkTo(['queues'])),
    );
  if (alive.length === 0) return paused;
  const waiting = lanes.filter(({ due }) => due.count > 0).map(({ queue }) => queue);
  const unserved = [...new Set(waiting)].filter((queue) => !alive.some(({ queues: served }) => served.includes(queue)));
  return [
    ...paused,
    ...unserved.flatMap((queue) => {
      const due = lanes.filter((lane) => lane.queue === queue).map(({ oldestDueAt }) => oldestDueAt);
      const since = Math.min(...due.filter((at) => at !== null));
      const text = `No live worker serves queue ${short(queue, 80)}, where jobs wait.`;
      return concern(true, `queue ${queue}`, text, linkTo(['queues']), since);
    }),
  ];
}

function limitConcerns({ limits, busiest }: Concerns): readonly Concern[] {
  const full = limits.filter(
    ({ waiting, running, settings }) => waiting > 0 && settings.total !== null && running >= settings.total,
  );
  const totals = full.flatMap(({ name, waiting }) => {
    const text = `Limit ${short(name, 80)} is full, and ${count(waiting, 'job waits', 'jobs wait')}.`;
    return concern(false, `limit ${name}`, text, linkTo(['limits', name]));
  });
  return busiest === null || full.some(({ name }) => name === busiest.limit.name)
    ? totals
    : [...totals, ...keyConcern(busiest)];
}

/** Says whether other keys wait, too: it tells a customer who floods from a limit that is too low. */
function keyConcern({ limit: { name }, keys }: LimitDetails): readonly Concern[] {
  const full = keys.filter(
    ({ due, running, settings }) => due > 0 && settings.concurrency !== null && running >= settings.concurrency,
  );
  const worst = full.toSorted((a, b) => b.due - a.due)[0];
  if (worst === undefined) return [];
  const others =
    full.length === 1 ? 'All other keys have room' : `${count(full.length - 1, 'other key is', 'other keys are')} full`;
  const text = `Limit ${short(name, 80)} is full for ${worst.key === '' ? 'all its jobs' : short(worst.key, 80)}: ${count(worst.due, 'job waits', 'jobs wait')}.${worst.key === '' ? '' : ` ${others}.`}`;
  return concern(false, `limit ${name}`, text, linkTo(['limits', name]));
}

function leftConcerns({ workers, dead }: Concerns): readonly Concern[] {
  const silent = missingOf(workers).length;
  return [
    ...(silent === 0
      ? []
      : concern(false, 'silent', `${count(silent, 'worker')} went silent within the hour.`, linkTo(['workers']))),
    ...(dead.count === 0
      ? []
      : concern(
          false,
          'dead',
          `${atLeast(dead, 'job is', 'jobs are')} dead and wait for a decision.`,
          linkTo(['failures']),
        )),
  ];
}

function atLeast({ count: counted, isExact }: Counted, one: string, many: string): string {
  return `${isExact ? '' : 'more than '}${count(counted, one, many)}`;
}
