import type {
  CancelAnswer,
  ChangeAnswer,
  Claim,
  ClaimRequest,
  Enqueued,
  Heartbeat,
  HeartbeatAnswer,
  HoldTarget,
  LimitWrite,
  NewJob,
  QueueQuota,
  SettleAnswer,
  Settlement,
} from '../../src/store/store.ts';
import type { VerbName } from '../../src/store/verbs.ts';
import type { ExecutedEvent, FinalState, History } from '../history.ts';
import { START } from '../scheduler.ts';
import { type Check, type CheckOptions, checkCall, checkStart, type Violation } from './checker.ts';
import { checkFinal } from './final.ts';
import { GateModel } from './gates.ts';
import { LimitModel, limitsOf } from './limits.ts';
import { isFor, Model, type ModelJob } from './model.ts';
import { OnceCheck } from './once.ts';
import { asEnqueue, checkSchedules } from './schedules.ts';

/*
 * The check for a store on which calls overlap.
 *
 * A call takes effect at some moment between its start and its answer, and each row of a batch at a moment of its own. So
 * the order of the answers says little. For each job by itself this looks for an order of its rows in which every answer
 * is right, with the same rules as the strict check; a row may go before another unless it began after the other ended.
 * When there is none, the store has broken a promise, whatever the true order was.
 *
 * What concerns several jobs (keys, holds, suspects, caps, jobs passed over) is checked for moments at which it is
 * certain: a job is certainly running from the answer of its claim until the start of what ended that run.
 */

/**
 * A job that has waited for this long is passed over by no claim that has places left. Back-scans take at most a twentieth
 * of the time, so after one whose transaction was open for 2.5 s the next comes 50 s later.
 */
const PASSED_OVER_MS = 60_000;

/** One row of a call, about one job; or the start of a handler. Times are the store's. */
interface Step {
  readonly verb: VerbName | 'start';
  readonly from: number;
  readonly to: number;
  readonly event: ExecutedEvent | { readonly job: string; readonly run: number; readonly attempt: number };
  /** The store times that it may have acted at. */
  readonly nows: readonly number[];
}

/** What a job certainly was, from the answer of one step until the start of the next that changed it. */
interface Stay {
  readonly job: ModelJob;
  readonly from: number;
  readonly to: number;
}

export function checkInterleaved(history: History, final: FinalState, options: CheckOptions): Violation[] {
  const violations: Violation[] = [];
  const report = (guarantee: number, at: number, text: string): void => void violations.push({ guarantee, at, text });
  const calls = history.events.filter((event) => event.kind === 'executed').map(asEnqueue);
  const model = new Model();
  const stays: Stay[] = [];
  for (const [id, steps] of stepsByJob(history)) {
    const order = findOrder(steps);
    if ('stuck' in order) {
      report(order.stuck.guarantee, order.stuck.at, `no order explains the answers about ${id}: ${order.stuck.text}`);
    } else {
      if (order.job !== undefined) model.jobs.set(id, order.job);
      stays.push(...order.stays);
    }
  }
  const once = new OnceCheck();
  for (const event of history.events) {
    if (event.kind === 'failed') report(10, event.at, `${event.verb} failed: ${event.message}`);
    once.observe(event, (guarantee, holds, text) => holds || report(guarantee, event.at, text()));
  }
  violations.push(...checkSchedules(history));
  checkKeys(calls, stays, report);
  const held = holdsIn(calls);
  checkLimits(calls, stays, report);
  for (const call of calls.filter(({ verb }) => verb === 'claim' || verb === 'claimGated' || verb === 'claimLimited'))
    checkClaimAmongOthers(call, stays, held, report);
  // A job whose answers nothing explains has been reported, and the model does not know it.
  const explained = violations.length === 0;
  checkFinal(
    model,
    explained ? final : { jobs: [], ledgers: new Map(), errorGroups: [] },
    options.ended,
    (guarantee, holds, text) => {
      if (!holds && explained) report(guarantee, Number.POSITIVE_INFINITY, text());
    },
  );
  return violations;
}

// One job

function stepsByJob(history: History): Map<string, Step[]> {
  const steps = new Map<string, Step[]>();
  const add = (id: string, step: Step): void => void steps.set(id, [...(steps.get(id) ?? []), step]);
  for (const event of history.events) {
    if (event.kind === 'handler') {
      const at = START + Math.floor(event.at);
      add(event.job, { verb: 'start', from: at, to: at, event, nows: [at] });
    }
    if (event.kind !== 'executed') continue;
    const from = START + Math.floor(event.from);
    const to = START + Math.floor(event.at);
    const call = asEnqueue(event);
    for (const { id, args, value, nows = [from, to] } of rowsOf(call)) {
      add(id, { verb: call.verb, from, to, event: { ...call, args, value }, nows: [...new Set(nows)] });
    }
  }
  return steps;
}

interface Row {
  readonly id: string;
  readonly args: readonly unknown[];
  readonly value: unknown;
  readonly nows?: readonly number[];
}

/** A call on many jobs as calls on one job each. */
function rowsOf({ verb, args, value }: ExecutedEvent): Row[] {
  const [first] = args;
  const each = <Given extends { readonly id: string }, Answer>(
    answers: readonly Answer[],
    keep: (given: Given, answer: Answer) => boolean = () => true,
  ): Row[] =>
    (first as readonly Given[]).flatMap((given, index) => {
      const answer = answers[index] as Answer;
      return keep(given, answer) ? [{ id: given.id, args: [[given]], value: [answer] }] : [];
    });
  switch (verb) {
    case 'enqueue':
      // What the holder of a key is answered with says nothing about the job that was not made.
      return each<NewJob, Enqueued>(value as Enqueued[], ({ id }, answer) => answer.id === id);
    case 'heartbeat':
      return each<Heartbeat, HeartbeatAnswer>(value as HeartbeatAnswer[]).map((row) => {
        const [heartbeat, answer] = [(row.args[0] as Heartbeat[])[0], (row.value as HeartbeatAnswer[])[0]];
        return answer?.kept && heartbeat ? { ...row, nows: [answer.leaseEndsAt - heartbeat.leaseMs] } : row;
      });
    case 'settle':
      return each<Settlement, SettleAnswer>(value as SettleAnswer[]);
    case 'claim':
    case 'claimGated':
    case 'claimLimited': {
      const request = first as ClaimRequest;
      return (value as Claim).jobs.map((job) => ({
        id: job.id,
        args: [{ ...request, limit: 1 }],
        value: { ...(value as Claim), jobs: [job] },
        nows: [job.leaseEndsAt - request.leaseMs],
      }));
    }
    case 'expired':
      return (value as { id: string }[]).map((job) => ({ id: job.id, args, value: [job] }));
    case 'remember':
      return [{ id: (first as { id: string }).id, args, value }];
    case 'cancel':
      return (value as CancelAnswer[]).map((answer) => ({ id: answer.id, args: [[answer.id]], value: [answer] }));
    case 'change':
      return (value as ChangeAnswer).ids.map((id) => ({ id, args, value: { ...(value as ChangeAnswer), ids: [id] } }));
    default:
      return [];
  }
}

type Order = { readonly job: ModelJob | undefined; readonly stays: readonly Stay[] } | { readonly stuck: Violation };

/** Enough for any history of one job; a wrong one may have more orders than can be tried. */
const MOST_TRIES = 20_000;

/**
 * Depth first; the order of the answers is tried first. A step that changes nothing is taken as soon as its answer is
 * right: taken later it could only become wrong. So only the order of changes is searched.
 */
function findOrder(steps: readonly Step[]): Order {
  let stuck: (Violation & { readonly left: number }) | null = null;
  let tries = 0;
  const seen = new Set<string>();
  const search = (
    given: readonly Step[],
    job: ModelJob | undefined,
    since: number,
    stays: readonly Stay[],
  ): Order | null => {
    const left = withoutReads(given, job);
    if (left.length === 0)
      return { job, stays: job ? [...stays, { job, from: since, to: Number.POSITIVE_INFINITY }] : stays };
    const state = `${left.map((step) => steps.indexOf(step))} ${fingerprint(job)}`;
    if (seen.has(state)) return null;
    seen.add(state);
    for (const step of eligible(left)) {
      for (const now of step.nows) {
        if (++tries > MOST_TRIES) return null;
        const { after, violation } = apply(step, job, now);
        if (violation !== null) {
          if (stuck === null || left.length < stuck.left) stuck = { ...violation, left: left.length };
          continue;
        }
        const rest = left.filter((other) => other !== step);
        const changed = changes(job, after);
        const stay = changed && job !== undefined ? [{ job, from: since, to: step.from }] : [];
        const order = search(rest, after, changed ? step.to : since, [...stays, ...stay]);
        if (order !== null) return order;
      }
    }
    return null;
  };
  return search(steps, undefined, 0, []) ?? { stuck: stuck as unknown as Violation };
}

/** Those that may come next: none of the others ended before they began. */
function eligible(left: readonly Step[]): Step[] {
  const firstEnd = Math.min(...left.map(({ to }) => to));
  return left.filter(({ from }) => from <= firstEnd);
}

function withoutReads(given: readonly Step[], job: ModelJob | undefined): readonly Step[] {
  const before = fingerprint(job);
  let left = given;
  for (;;) {
    const reads = eligible(left).filter((step) =>
      step.nows.some((now) => {
        const { after, violation } = apply(step, job, now);
        return violation === null && fingerprint(after) === before;
      }),
    );
    if (reads.length === 0) return left;
    left = left.filter((step) => !reads.includes(step));
  }
}

function fingerprint(job: ModelJob | undefined): string {
  return job === undefined ? '' : JSON.stringify({ ...job, made: null, memos: [...job.memos] });
}

/** Whether a stay has ended: waiting in the same place, or the same run, is one. */
function changes(before: ModelJob | undefined, after: ModelJob | undefined): boolean {
  if (before === undefined || after === undefined) return before !== after;
  return before.state !== after.state || before.runs !== after.runs || before.lane !== after.lane;
}

function apply(
  step: Step,
  job: ModelJob | undefined,
  now: number,
): { after: ModelJob | undefined; violation: Violation | null } {
  const model = new Model(new GateModel({ isBlind: true }));
  if (job !== undefined) model.jobs.set(job.made.id, clone(job));
  let violation: Violation | null = null;
  const expect: Check['expect'] = (guarantee, holds, text) => {
    if (!holds) violation ??= { guarantee, at: step.to - START, text: text() };
  };
  expect(
    2,
    now >= step.from && now <= step.to,
    () => `${step.verb} answered the time ${now}, outside ${step.from} to ${step.to}`,
  );
  const check: Check = { model, now, expect };
  if (step.verb === 'start') checkStart(step.event as { job: string; run: number; attempt: number }, check);
  else checkCall(step.event as ExecutedEvent, check);
  return { after: model.all()[0], violation };
}

function clone(job: ModelJob): ModelJob {
  return { ...job, lease: job.lease && { ...job.lease }, ledger: [...job.ledger], memos: new Set(job.memos) };
}

// Several jobs

type Report = (guarantee: number, at: number, text: string) => void;

/** A second job of a key was accepted while another certainly held it. */
function checkKeys(calls: readonly ExecutedEvent[], stays: readonly Stay[], report: Report): void {
  const keyed = Map.groupBy(
    stays.filter(({ job }) => job.holdsKey),
    ({ job }) => `${job.made.name} ${job.made.key}`,
  );
  for (const call of calls.filter(({ verb }) => verb === 'enqueue')) {
    const [from, to] = [START + call.from, START + call.at];
    for (const [index, made] of (call.args[0] as readonly NewJob[]).entries()) {
      const answer = (call.value as readonly Enqueued[])[index] as Enqueued;
      if (made.key === null || answer.id !== made.id) continue;
      const rival = keyed
        .get(`${made.name} ${made.key}`)
        ?.find(({ job, ...stay }) => job.made.id !== made.id && stay.from < from && stay.to > to);
      if (rival) report(7, call.at, `${made.id} was accepted while ${rival.job.made.id} held its key`);
    }
  }
}

interface Held {
  readonly target: HoldTarget;
  /** While it was certainly held: from the answer of the hold to the start of the next hold or release. */
  readonly from: number;
  readonly to: number;
  /** The earliest and the latest time at which it might have been held. */
  readonly maybeFrom: number;
  readonly maybeTo: number;
}

function holdsIn(calls: readonly ExecutedEvent[]): Held[] {
  const about = calls.filter(({ verb }) => verb === 'hold' || verb === 'release');
  const key = ({ args }: ExecutedEvent): string => JSON.stringify(args[0]);
  return about
    .filter(({ verb }) => verb === 'hold')
    .map((call) => {
      const others = about.filter((other) => other !== call && key(other) === key(call) && other.at > call.from);
      const releases = others.filter(({ verb, from }) => verb === 'release' && from > call.at);
      const until = (call.args[1] as number | null) ?? Number.POSITIVE_INFINITY;
      return {
        target: call.args[0] as HoldTarget,
        from: START + call.at,
        to: Math.min(until, ...others.map(({ from }) => START + from)),
        maybeFrom: START + call.from,
        maybeTo: Math.min(until, ...releases.map(({ at }) => START + at)),
      };
    });
}

function concerns(target: HoldTarget, { queue, made }: ModelJob): boolean {
  return 'queue' in target ? target.queue === queue : target.resource === made.resource;
}

function checkClaimAmongOthers(
  call: ExecutedEvent,
  stays: readonly Stay[],
  held: readonly Held[],
  report: Report,
): void {
  const request = call.args[0] as ClaimRequest;
  const claimed = new Set((call.value as Claim).jobs.map(({ id }) => id));
  const [from, to] = [START + call.from, START + call.at];
  const throughout = stays.filter((stay) => stay.from < from && stay.to > to);
  // As they were when they were claimed: their stay as waiting jobs ends with this call.
  const taken = stays.filter(
    ({ job, ...stay }) => claimed.has(job.made.id) && job.state === 'waiting' && stay.to === from,
  );
  for (const { job } of taken) {
    const hold = held.find((one) => one.from <= from && one.to > to && concerns(one.target, job));
    if (hold) report(8, call.at, `${job.made.id} was claimed while ${JSON.stringify(hold.target)} was held`);
  }
  for (const quota of request.queues) {
    const running = throughout.filter(({ job }) => job.state === 'running' && job.queue === quota.queue);
    checkRetries(
      quota,
      running,
      taken.filter(({ job }) => job.queue === quota.queue),
      call,
      report,
    );
    if (claimed.size > 0 || call.verb !== 'claim') continue;
    const passed = throughout.find(
      ({ job, ...stay }) =>
        job.state === 'waiting' &&
        job.queue === quota.queue &&
        job.lane === 'fresh' &&
        isFor(job, request) &&
        job.made.resource === null &&
        limitsOf(job).length === 0 &&
        quota.suspect === 0 &&
        Math.max(stay.from, job.dueAt) < from - PASSED_OVER_MS &&
        !held.some((one) => one.maybeFrom < to && one.maybeTo > from && concerns(one.target, job)),
    );
    if (passed)
      report(10, call.at, `an empty claim passed over ${passed.job.made.id}, due for ${from - passed.job.dueAt} ms`);
  }
}

/** What certainly ran throughout a claim, and what the claim took, is within the limits that were certain meanwhile. */
function checkLimits(calls: readonly ExecutedEvent[], stays: readonly Stay[], report: Report): void {
  const written = calls.filter(({ verb }) => verb === 'writeLimits');
  for (const call of calls.filter(({ verb }) => verb === 'claimLimited' || verb === 'claimGated')) {
    const rules = new LimitModel();
    for (const { args, at } of written.filter((write) => write.at < call.from)) {
      rules.write(args[0] as LimitWrite[], START + at);
    }
    const isChanging = written.some(({ from, at }) => from <= call.at && at >= call.from);
    const [from, to] = [START + call.from, START + call.at];
    const ran = stays.filter((stay) => stay.job.state === 'running' && stay.from < from && stay.to > to);
    const taken = (call.value as Claim).jobs;
    for (const one of isChanging ? [] : taken.flatMap(({ limits }) => limits)) {
      const { concurrency, total } = rules.settings(one);
      const ofLimit = [...ran.map(({ job }) => limitsOf(job)), ...taken.map(({ limits }) => limits)].map((limits) =>
        limits.find(({ limit }) => limit === one.limit),
      );
      const inTotal = ofLimit.filter((other) => other !== undefined).length;
      const ofKey = ofLimit.filter((other) => other?.key === one.key).length;
      if (ofKey > (concurrency ?? Number.POSITIVE_INFINITY)) {
        report(15, call.at, `${ofKey} jobs of ${JSON.stringify(one)} ran at once, above ${concurrency}`);
      }
      if (inTotal > (total ?? Number.POSITIVE_INFINITY)) {
        report(15, call.at, `${inTotal} jobs of ${one.limit} ran at once, above its total of ${total}`);
      }
    }
  }
}

function checkRetries(
  quota: QueueQuota,
  running: readonly Stay[],
  taken: readonly Stay[],
  call: ExecutedEvent,
  report: Report,
): void {
  const isRetry = ({ job }: Stay): boolean => job.lane === 'retry' || job.lane === 'suspect';
  const retries = [...running, ...taken].filter(isRetry).length;
  const cap = quota.maxRetriesInFlight;
  if (cap !== null && taken.some(isRetry) && retries > cap) {
    report(8, call.at, `${retries} retries of ${quota.queue} ran at once, above ${cap}`);
  }
  const suspects = [...running, ...taken].filter(({ job }) => job.lane === 'suspect');
  if (suspects.length > 1 && taken.some(({ job }) => job.lane === 'suspect')) {
    report(8, call.at, `${suspects.length} suspects of ${quota.queue} ran at once`);
  }
}
