import { states } from '../job.ts';
import { parentOf } from '../store/gates.ts';
import type {
  GateRef,
  LimitInfo,
  Operation,
  QueueInfo,
  RegisteredWorker,
  Schedules,
  Store,
  StoredGate,
  StoreStats,
} from '../store/store.ts';
import { gateInfo } from './gate-info.ts';
import { Gauge, type Labels, MOST_SERIES, StoredCounter } from './prometheus.ts';

/** Actions of operators are told of for so long. */
const RECENT_MS = 24 * 3_600_000;

/** What a scrape reads from the store. */
export interface StoreSnapshot {
  readonly stats: StoreStats;
  readonly gates: readonly StoredGate[];
  readonly limits: readonly LimitInfo[];
  readonly schedules: Schedules;
  readonly queues: readonly QueueInfo[];
  readonly workers: readonly RegisteredWorker[];
  readonly operations: readonly Operation[];
}

export async function readSnapshot(store: Store): Promise<StoreSnapshot> {
  const limit = MOST_SERIES;
  const [stats, gates, limits, schedules, queues, workers, operations] = await Promise.all([
    store.stats(),
    store.gates({ limit, skipWaiting: true }),
    store.limits({ limit }),
    store.schedules({ soonest: true, limit }),
    store.queues(),
    store.workers(),
    store.operations(limit),
  ]);
  return { stats, gates, limits, schedules, queues, workers, operations };
}

/** Metrics that are read from the store, and so are the same in every process: take their maximum, not their sum. */
export function renderSnapshot(prefix: string, snapshot: StoreSnapshot): string {
  const named = (name: string): string => `${prefix}_${name}`;
  const { stats } = snapshot;
  const jobs = new Gauge(named('jobs'), 'Jobs in the store by state.');
  const enqueued = new StoredCounter(named('enqueued_total'), 'Jobs that were enqueued since the store was made.');
  for (const { queue, name, states: inState, totals } of stats.rows) {
    for (const state of states) jobs.add({ queue, name, state }, inState[state]);
    enqueued.add({ queue, name }, totals.enqueued);
  }
  const all = [
    jobs,
    enqueued,
    ...gateGauges(named, snapshot.gates),
    limitJobs(named, snapshot.limits),
    ...scheduleGauges(named, snapshot.schedules),
    pausedQueues(named, snapshot.queues),
    ...workerGauges(named, snapshot.workers),
    recentOperations(named, snapshot.operations, stats.now),
  ];
  return all.map((metric) => metric.render()).join('');
}

type Named = (name: string) => string;

const phases = ['closed', 'open', 'ramp'] as const;

/** Each gate has a series for every phase, and for being held, so that an alert on one ends. */
function gateGauges(named: Named, gates: readonly StoredGate[]): Gauge[] {
  const byPhase = new Gauge(named('gates'), 'Gates that were heard of lately, by phase.');
  const held = new Gauge(named('gates_held'), 'Gates whose dependency asked to be left alone (Retry-After).');
  const pinned = new Gauge(named('gates_pinned'), 'Gates that an operator keeps open or closed.');
  const budget = new Gauge(named('gate_retry_budget'), 'Retries that may start at once behind a gate.');
  for (const stored of gates) {
    const { kind, name } = stored.gate;
    const labels = gateLabels(stored.gate);
    const { phase, heldUntil, pin, budget: retries } = gateInfo(stored, null);
    for (const one of phases) byPhase.add({ ...labels, phase: one }, phase === one ? 1 : 0);
    held.add(labels, heldUntil === null ? 0 : 1);
    pinned.add(labels, pin === null ? 0 : 1);
    // Keys have a budget each; their sum would say nothing.
    if (kind === 'resource' && labels.gate === name) budget.add({ gate: name }, retries.tokens);
  }
  return [byPhase, held, pinned, budget];
}

/** All keys of a parent count as one gate: strangers choose them. */
export function gateLabels({ kind, name }: GateRef): Labels & { readonly gate: string } {
  const parent = kind === 'resource' ? parentOf(name) : null;
  return { kind, gate: parent === null ? name : `${parent}/*` };
}

/** By name, not by key: strangers choose keys. */
function limitJobs(named: Named, limits: readonly LimitInfo[]): Gauge {
  const jobs = new Gauge(named('limit_jobs'), 'Jobs behind limits, of all keys: those that run and those that wait.');
  for (const { name, running, waiting } of limits) {
    jobs.add({ limit: name, state: 'running' }, running);
    jobs.add({ limit: name, state: 'waiting' }, waiting);
  }
  return jobs;
}

/** The soonest come first, so those that are due are among them, however many schedules there are. */
function scheduleGauges(named: Named, { now, schedules }: Schedules): Gauge[] {
  const due = schedules.flatMap(({ nextAt }) => (nextAt !== null && nextAt <= now ? [now - nextAt] : []));
  const active = new Gauge(named('schedules'), `Schedules that have a next tick; at most ${MOST_SERIES} are counted.`);
  const waiting = new Gauge(named('schedules_due'), 'Schedules whose tick is due and was not fired yet.');
  const late = new Gauge(named('schedule_lateness_seconds'), 'For how long the oldest tick that is due was not fired.');
  active.add({}, schedules.length);
  waiting.add({}, due.length);
  late.add({}, Math.max(0, ...due) / 1_000);
  return [active, waiting, late];
}

function pausedQueues(named: Named, queues: readonly QueueInfo[]): Gauge {
  const gauge = new Gauge(named('queue_paused'), '1 for a queue that is paused.');
  for (const { queue, paused } of queues) gauge.add({ queue }, paused ? 1 : 0);
  return gauge;
}

function workerGauges(named: Named, workers: readonly RegisteredWorker[]): Gauge[] {
  const count = new Gauge(named('workers'), 'Workers, by whether they were seen within a minute.');
  const places = new Gauge(
    named('worker_places'),
    'How many jobs the workers that were seen can run at once, by queue.',
  );
  const alive = workers.filter((worker) => worker.alive);
  count.add({ state: 'alive' }, alive.length);
  count.add({ state: 'missing' }, workers.length - alive.length);
  for (const { queues, concurrency } of alive) for (const queue of queues) places.add({ queue }, concurrency);
  return [count, places];
}

function recentOperations(named: Named, operations: readonly Operation[], now: number): Gauge {
  const gauge = new Gauge(named('operations'), 'Actions of operators that began within a day, of the newest thousand.');
  for (const { action, state, startedAt } of operations) {
    if (now - startedAt < RECENT_MS) gauge.add({ action, state }, 1);
  }
  return gauge;
}
