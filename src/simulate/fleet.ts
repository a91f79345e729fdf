import type { Clock } from '../clock.ts';
import { type AnyJobDefinition, defineJob, queuesOf } from '../definition.ts';
import { Enqueuer } from '../enqueue.ts';
import { ConfigError } from '../errors.ts';
import { finishedStates } from '../job.ts';
import { LimitWriter, limitsInCode } from '../limit-writer.ts';
import { Events } from '../observe/events.ts';
import { makeLogger } from '../observe/log.ts';
import { Metrics } from '../observe/metrics.ts';
import type { Random } from '../retry/jitter.ts';
import { MemoryStore } from '../store/memory/store.ts';
import { planWork } from '../worker/options.ts';
import { Reporter } from '../worker/report.ts';
import { Worker } from '../worker/worker.ts';
import { type Dependency, errorOf } from './dependency.ts';
import type { SimulatedPolicy } from './policies.ts';
import type { GatePhase, Recorder } from './recorder.ts';
import type { ReadScenario } from './scenario.ts';

const JOB = 'call';
const RESOURCE = 'dependency';
const LIMIT = 'limit';
const MOST_BYTES = 1_024;

export interface FleetParts {
  readonly scenario: ReadScenario;
  readonly policy: Required<Pick<SimulatedPolicy, 'retry' | 'gate'>>;
  readonly clock: Clock;
  /** Ms since the beginning of the scenario. */
  readonly elapsedMs: () => number;
  readonly dependency: Dependency;
  /** Draws which jobs are poison: in the order of arrival, so that they are the same under every policy. */
  readonly poison: Random;
  readonly recorder: Recorder;
}

/**
 * Workers as in production, on the store in memory. Each has a reporter of its own, as processes have; Mulligan itself,
 * which wires them there, also opens databases, and so cannot run in a browser.
 */
export class Fleet {
  readonly #parts: FleetParts;
  readonly #store: MemoryStore;
  readonly #enqueuer: Enqueuer;
  readonly #job: AnyJobDefinition;
  #failed: { readonly error: unknown } | null = null;

  private constructor(parts: FleetParts, store: MemoryStore, limits: LimitWriter, job: AnyJobDefinition) {
    this.#parts = parts;
    this.#store = store;
    this.#job = job;
    this.#enqueuer = new Enqueuer({
      store,
      clock: parts.clock,
      limits,
      events: new Events(() => {}),
      queueRetry: new Map(),
      queueResource: new Map(),
      hardCap: undefined,
      maxPayloadBytes: MOST_BYTES,
      tracing: null,
      targetOf: () => job,
    });
  }

  static async start(parts: FleetParts): Promise<Fleet> {
    const store = new MemoryStore({ clock: parts.clock });
    const job = jobOf(parts);
    const limits = new LimitWriter(store);
    await limits.register(limitsInCode([job], 'simulate'));
    await store.writeRetention(finishedStates.map((state) => ({ name: JOB, state, source: 'code', keptMs: null })));
    const fleet = new Fleet(parts, store, limits, job);
    for (let index = 0; index < parts.scenario.workers; index++) fleet.#startWorker(index);
    return fleet;
  }

  /** A job arrives. What goes wrong is thrown by `check`. */
  enqueue(): void {
    const { scenario, poison, recorder } = this.#parts;
    const isPoison = poison() < scenario.poison.share;
    this.#enqueuer.enqueue(this.#job, isPoison).then(
      ({ id }) => recorder.arrived(id),
      (error: unknown) => {
        this.#failed = { error };
      },
    );
  }

  check(): void {
    if (this.#failed !== null) throw this.#failed.error;
  }

  /** Null where the policy has no gate. */
  async gatePhase(): Promise<GatePhase | null> {
    const { policy, clock } = this.#parts;
    if (policy.gate === 'none') return null;
    const [gate] = await this.#store.gates({ kind: policy.gate === 'soft' ? 'job' : 'resource', limit: 1 });
    if (gate === undefined) return 'closed';
    return gate.state.heldUntil > clock.now() ? 'held' : gate.state.phase;
  }

  #startWorker(index: number): void {
    const { clock, scenario, recorder } = this.#parts;
    const definitions = new Map([[JOB, this.#job]]);
    const logSink = (): void => {};
    const log = makeLogger(logSink, () => ({}));
    const events = new Events((_, error) => {
      this.#failed = { error };
    });
    recorder.watch(events);
    const { concurrency, retryShare } = scenario;
    const worker = new Worker({
      store: this.#store,
      clock,
      definitions,
      plan: planWork({ concurrency, retryShare, name: `worker-${index + 1}` }, queuesOf(definitions.values())),
      host: { name: 'simulated', pid: index + 1, mulligan: 'simulated' },
      report: new Reporter({
        events,
        metrics: new Metrics('mulligan'),
        log,
        decisions: null,
        definitions,
        clock,
        tracing: null,
      }),
      logSink,
      tracing: null,
      maxPayloadBytes: MOST_BYTES,
      maxResultBytes: MOST_BYTES,
      enqueue: enqueuesNothing,
      enqueueMany: enqueuesNothing,
      isOnlyWorker: () => true,
      onStopped: () => {},
    });
    worker.start();
  }
}

function enqueuesNothing(): Promise<never> {
  return Promise.reject(new ConfigError('A simulated job enqueues no other.'));
}

function jobOf({ scenario, policy, clock, elapsedMs, dependency, recorder }: FleetParts): AnyJobDefinition {
  const { gate, retry } = policy;
  const { limit, poison } = scenario;
  const { retryAfterMs } = scenario.dependency;
  return defineJob<boolean>({
    name: JOB,
    retry,
    ...(gate === 'soft' ? {} : { resource: gate === 'none' ? false : RESOURCE }),
    ...(limit === null || limit === undefined ? {} : { limit: { name: LIMIT, ...limit } }),
    run: async (isPoison, { run }) => {
      recorder.called(run);
      const { kind, durationMs } = dependency.call(elapsedMs(), isPoison ? poison.answer : null);
      await new Promise<void>((resolve) => clock.after(durationMs, resolve));
      recorder.answered(kind === 'ok' ? 'successes' : 'failures');
      if (kind !== 'ok') throw errorOf(kind, retryAfterMs);
    },
  });
}
