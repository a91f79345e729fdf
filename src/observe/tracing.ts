import type { ClaimedJob, Enqueued, NewJob, Settlement } from '../store/store.ts';

/*
 * What a queue tells a tracer: one span per call that enqueues, one span per run. No type of OpenTelemetry appears here,
 * because it is an optional peer: an application without it must be able to read our declarations. opentelemetry.ts is the
 * only module that uses it.
 */

/** A `Tracer` of `@opentelemetry/api`. */
export interface TracerLike {
  startSpan(name: string, options?: never, context?: never): unknown;
}

export interface Tracing {
  /** Begins the span of a call that stores these jobs; there is at least one. */
  send(jobs: readonly NewJob[]): SendSpan;
  /** Begins the span of a run. */
  run(job: ClaimedJob): RunSpan;
  /** The span of a run whose process died: a rescuer tells of it. */
  crashed(job: ClaimedJob, settlement: Settlement): void;
}

export interface SendSpan {
  /** What the jobs carry to their runs; undefined when there is no valid span. */
  readonly trace: string | undefined;
  stored(answers: readonly Enqueued[]): void;
  failed(error: unknown): void;
}

export interface RunSpan {
  /** Calls the handler with this span as the active one. */
  within<Answer>(handler: () => Answer): Answer;
  /** The handler has ended: the span ends here, whenever its outcome is recorded. */
  stopped(): void;
  /** Called once: what was recorded of the run. */
  settled(settlement: Settlement): void;
  /** Called once, instead of `settled`: nothing was recorded. */
  lost(why: 'lease-lost' | 'settle-failed'): void;
}

/** Stores jobs inside a span, with its context on each of them. */
export async function sendTraced(
  tracing: Tracing,
  jobs: readonly NewJob[],
  store: (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>,
): Promise<readonly Enqueued[]> {
  if (jobs.length === 0) return store(jobs);
  const span = tracing.send(jobs);
  const { trace } = span;
  try {
    const answers = await store(trace === undefined ? jobs : jobs.map((job) => ({ ...job, trace })));
    span.stored(answers);
    return answers;
  } catch (error) {
    span.failed(error);
    throw error;
  }
}

/** The trace id in what a job carries. */
export function traceIdOf(trace: string): string | null {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(trace)?.[1] ?? null;
}
