import type { GateChange } from '../gate/index.ts';
import { isRetry } from '../job.ts';
import type { Decision } from '../retry/decision.ts';
import type { OutcomeKind } from '../retry/outcome.ts';
import type { ClaimedJob, GateRef, Settlement } from '../store/store.ts';
import { Counter, Histogram, type Labels, MOST_SERIES } from './prometheus.ts';
import { gateLabels } from './store-gauges.ts';

/** Backoffs reach from milliseconds to days. */
const BACKOFF_BUCKETS_S = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400];
const DURATION_BUCKETS_S = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900];

const CLAIM_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const BATCH_BUCKETS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000];

export type ClaimKind = 'ordinary' | 'gated' | 'limited';
/** One object each, so that its text is rendered once. */
const CLAIM_LABELS: Readonly<Record<ClaimKind, Labels>> = {
  ordinary: { claim: 'ordinary' },
  gated: { claim: 'gated' },
  limited: { claim: 'limited' },
};
const NO_LABELS: Labels = {};

/**
 * Metrics for Prometheus. They are of this process alone, so sum them over processes; what is read from the store
 * is in store-gauges.ts.
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
  readonly #limited: Counter;
  readonly #claims: Histogram;
  readonly #settleSizes: Histogram;
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
    this.#claims = new Histogram(
      named('claim_duration_seconds'),
      'How long the store took to answer claims: ordinary ones, behind gates, behind limits.',
      CLAIM_BUCKETS_S,
    );
    this.#settleSizes = new Histogram(
      named('settle_batch_size'),
      'Outcomes that were sent to the store with one call.',
      BATCH_BUCKETS,
    );
    this.#gateChanges = new Counter(named('gate_changes_total'), 'Changes of gates that this process made.');
    this.#limited = new Counter(
      named('limited_total'),
      'How often a limit was seen to keep jobs waiting, at most once per second and worker.',
    );
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

  /** By name, not by key: strangers choose keys. */
  limited(limit: string): void {
    this.#limited.add({ limit });
  }

  claimed(claim: ClaimKind, durationMs: number): void {
    this.#claims.observe(CLAIM_LABELS[claim], durationMs / 1_000);
  }

  /** Outcomes that were sent to the store with one call. */
  settling(outcomes: number): void {
    this.#settleSizes.observe(NO_LABELS, outcomes);
  }

  /** The text that Prometheus scrapes, of this process alone. */
  render(): string {
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
      this.#claims,
      this.#settleSizes,
      this.#gateChanges,
      this.#limited,
    ]
      .map((metric) => metric.render())
      .join('');
  }
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
