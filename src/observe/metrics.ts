import type { GateChange } from '../gate/index.ts';
import { isRetry, states } from '../job.ts';
import type { Decision } from '../retry/decision.ts';
import type { OutcomeKind } from '../retry/outcome.ts';
import { parentOf } from '../store/gates.ts';
import type { ClaimedJob, GateRef, Settlement, StoredGate, StoreStats } from '../store/store.ts';
import { gateInfo } from './gate-info.ts';
import { Counter, Gauge, Histogram, type Labels, MOST_SERIES } from './prometheus.ts';

/** Backoffs reach from milliseconds to days. */
const BACKOFF_BUCKETS_S = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400];
const DURATION_BUCKETS_S = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900];

/**
 * Metrics for Prometheus. Counters and histograms are of this process alone, so sum them over processes; the gauges of jobs
 * and gates are read from the store and are the same in every process.
 * Labels are the queue a job was enqueued to, its name, and closed sets; beyond `MOST_SERIES` combinations, the rest is counted under "other".
 */
export class Metrics {
  readonly #runs: Counter;
  readonly #retries: Counter;
  readonly #exhausted: Counter;
  readonly #dead: Counter;
  readonly #leasesLost: Counter;
  readonly #settleFailures: Counter;
  readonly #retryLatency: Histogram;
  readonly #duration: Histogram;
  readonly #wait: Histogram;
  readonly #gateChanges: Counter;
  readonly #jobs: Gauge;
  readonly #gates: Gauge;
  readonly #retryBudget: Gauge;
  readonly #labels: LabelSets = new LabelSets();

  constructor(prefix: string) {
    const named = (name: string): string => `${prefix}_${name}`;
    this.#runs = new Counter(named('runs_total'), 'Finished runs by outcome.');
    this.#retries = new Counter(named('retries_total'), 'Counted runs that were not the first attempt of their job.');
    this.#exhausted = new Counter(named('retry_exhausted_total'), 'Jobs that died with no attempt left.');
    this.#dead = new Counter(named('dead_total'), 'Jobs that died, by reason.');
    this.#leasesLost = new Counter(named('leases_lost_total'), 'Runs whose job was taken over by another worker.');
    this.#settleFailures = new Counter(named('settle_failures_total'), 'Outcomes that could not be recorded.');
    this.#retryLatency = new Histogram(
      named('retry_latency_seconds'),
      'Time that retried jobs spent waiting out their backoff.',
      BACKOFF_BUCKETS_S,
    );
    this.#duration = new Histogram(named('run_duration_seconds'), 'How long runs took.', DURATION_BUCKETS_S);
    this.#wait = new Histogram(named('wait_seconds'), 'How long due jobs waited for a worker.', DURATION_BUCKETS_S);
    this.#gateChanges = new Counter(named('gate_changes_total'), 'Changes of gates that this process made.');
    this.#gates = new Gauge(named('gates'), 'Gates that were heard of lately, by phase.');
    this.#retryBudget = new Gauge(named('gate_retry_budget'), 'Retries that may start at once behind a gate.');
    this.#jobs = new Gauge(named('jobs'), 'Jobs in the store by state.');
  }

  started(job: ClaimedJob, waitedMs: number): void {
    this.#wait.observe(this.#labels.of(job).all, waitedMs / 1_000);
  }

  settled(job: ClaimedJob, { outcome, decision, startedAt, endedAt }: Settlement): void {
    const { all: labels, outcomes } = this.#labels.of(job);
    outcomes[outcome] ??= { ...labels, outcome };
    this.#runs.add(outcomes[outcome]);
    this.#duration.observe(labels, (endedAt - startedAt) / 1_000);
    if (isCounted(decision) && job.attempts > 1) this.#retries.add(labels);
    const backoffMs = backoffBefore(job, decision);
    if (backoffMs !== null) this.#retryLatency.observe(labels, backoffMs / 1_000);
    if (decision.kind !== 'dead') return;
    this.#dead.add({ ...labels, reason: decision.reason });
    if (decision.reason === 'exhausted') this.#exhausted.add(labels);
  }

  leaseLost(job: ClaimedJob): void {
    this.#leasesLost.add(this.#labels.of(job).all);
  }

  settleFailed(job: ClaimedJob): void {
    this.#settleFailures.add(this.#labels.of(job).all);
  }

  gateChanged(gate: GateRef, change: GateChange): void {
    this.#gateChanges.add({ ...gateLabels(gate), change });
  }

  /** The text that Prometheus scrapes. */
  render({ rows }: StoreStats, gates: readonly StoredGate[] = []): string {
    this.#readGates(gates);
    this.#jobs.clear();
    for (const row of rows) {
      for (const state of states) this.#jobs.add({ queue: row.queue, name: row.name, state }, row.states[state]);
    }
    return [
      this.#runs,
      this.#retries,
      this.#exhausted,
      this.#dead,
      this.#leasesLost,
      this.#settleFailures,
      this.#retryLatency,
      this.#duration,
      this.#wait,
      this.#gateChanges,
      this.#gates,
      this.#retryBudget,
      this.#jobs,
    ]
      .map((metric) => metric.render())
      .join('');
  }

  /** Each gate has a series for every phase, so that an alert on one ends. */
  #readGates(gates: readonly StoredGate[]): void {
    this.#gates.clear();
    this.#retryBudget.clear();
    for (const stored of gates) {
      const labels = gateLabels(stored.gate);
      for (const phase of phases) this.#gates.add({ ...labels, phase }, stored.state.phase === phase ? 1 : 0);
      // Keys have a budget each; their sum would say nothing.
      const isOne = stored.gate.kind === 'resource' && labels.gate === stored.gate.name;
      if (isOne) this.#retryBudget.add({ gate: stored.gate.name }, gateInfo(stored, null).budget.tokens);
    }
  }
}

const phases = ['closed', 'open', 'ramp'] as const;

/** All keys of a parent count as one gate: strangers choose them. */
function gateLabels({ kind, name }: GateRef): Labels {
  const parent = kind === 'resource' ? parentOf(name) : null;
  return { kind, gate: parent === null ? name : `${parent}/*` };
}

function isCounted(decision: Decision): boolean {
  if (decision.kind === 'dead') return decision.counted;
  return decision.kind !== 'defer' && !isGivenBack(decision);
}

function isGivenBack({ kind }: Decision): boolean {
  return kind === 'snooze' || kind === 'release';
}

/**
 * The backoff before this run. After a run that is given back, another run follows the same backoff, so the backoff is
 * counted with that one. A redriven job waited for an operator, not for a backoff.
 */
function backoffBefore({ lane, previousDelayMs }: ClaimedJob, decision: Decision): number | null {
  return isRetry(lane) && !isGivenBack(decision) ? previousDelayMs : null;
}

/** The labels of one queue and job name, and the same with an outcome. */
interface JobLabels {
  readonly all: Labels;
  readonly outcomes: Partial<Record<OutcomeKind, Labels>>;
}

/** One object per combination, so that its text is rendered once. */
class LabelSets {
  readonly #known: Map<string, Map<string, JobLabels>> = new Map();
  #size = 0;

  of({ homeQueue: queue, name }: ClaimedJob): JobLabels {
    return this.#known.get(queue)?.get(name) ?? this.#make(queue, name);
  }

  #make(queue: string, name: string): JobLabels {
    if (this.#size++ > MOST_SERIES) this.#forget();
    const labels: JobLabels = { all: { queue, name }, outcomes: {} };
    const names = this.#known.get(queue) ?? new Map();
    this.#known.set(queue, names.set(name, labels));
    return labels;
  }

  #forget(): void {
    this.#known.clear();
    this.#size = 0;
  }
}
