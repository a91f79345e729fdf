import type * as Api from '@opentelemetry/api';
import type { Clock } from '../clock.ts';
import { unexpected } from '../config.ts';
import { ConfigError } from '../errors.ts';
import type { StoredError } from '../retry/outcome.ts';
import type { ClaimedJob, Enqueued, NewJob, Settlement } from '../store/store.ts';
import { toStoredError } from '../untrusted/stored-error.ts';
import { read } from '../untrusted/thrown.ts';
import { packageVersion } from '../version.ts';
import type { Logger } from './log.ts';
import type { RunSpan, SendSpan, TracerLike, Tracing } from './tracing.ts';

/*
 * Spans by OpenTelemetry's conventions for messaging. `@opentelemetry/api` is an optional peer: it is imported when
 * `Mulligan.open` is given `tracing`, and never otherwise.
 *
 * A job carries the context of its send span as text. The run's span is a child of it, so that one trace shows the enqueue
 * and all runs, and is linked to it, as the conventions ask: backends that part traces by process follow the link.
 */

/** Null when there is nothing to trace with. */
export async function openTracing(
  given: TracerLike | boolean | undefined,
  clock: Clock,
  log: Logger,
): Promise<Tracing | null> {
  if (given === undefined || given === false) return null;
  const what = 'Mulligan.open: tracing';
  if (given !== true && typeof read(given, 'startSpan') !== 'function') {
    throw unexpected(what, 'true, false, or a tracer of @opentelemetry/api', given);
  }
  const api = await import('@opentelemetry/api').catch((cause: unknown) => {
    throw new ConfigError(`${what}: expected the package @opentelemetry/api, found none. Install it.`, { cause });
  });
  if (given === true && registeredProvider(api) === null) {
    log.warn(
      'tracing is true, but no OpenTelemetry SDK has registered a tracer provider: no spans are made until one does',
    );
  }
  const tracer = given === true ? api.trace.getTracer('mulligan', packageVersion()) : (given as Api.Tracer);
  return new OpenTelemetry(api, tracer, clock, (error) =>
    log.warn('the tracer threw; spans are missing (logged once)', { error }),
  );
}

/** Exports the spans that the SDK has gathered: a process that ends by `process.exit` would lose them. */
export async function flushSpans(): Promise<void> {
  const provider = registeredProvider(await import('@opentelemetry/api'));
  const flush = read(provider, 'forceFlush');
  if (typeof flush === 'function') await flush.call(provider);
}

/** What the SDK has registered, and not the proxy that the API puts before it; null for none. */
function registeredProvider({ trace, ProxyTracerProvider }: typeof Api): Api.TracerProvider | null {
  const provider = trace.getTracerProvider();
  if (!(provider instanceof ProxyTracerProvider)) return provider;
  return provider.getDelegateTracer('mulligan') === undefined ? null : provider.getDelegate();
}

class OpenTelemetry implements Tracing {
  readonly #api: typeof Api;
  readonly #tracer: Api.Tracer;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  /** It is told of once: it may throw for every job. */
  #hasFailed = false;

  constructor(api: typeof Api, tracer: Api.Tracer, clock: Clock, onError: (error: unknown) => void) {
    this.#api = api;
    this.#tracer = tracer;
    this.#clock = clock;
    this.#onError = onError;
  }

  send(jobs: readonly NewJob[]): SendSpan {
    const { context, SpanKind } = this.#api;
    const { name, queue } = jobs[0] as NewJob;
    const span = this.#start(
      `send ${name}`,
      { kind: SpanKind.PRODUCER, attributes: sendAttributes(name, queue, jobs.length), startTime: this.#now() },
      context.active(),
    );
    return {
      trace: span === null ? undefined : this.#safely(() => formatTrace(span.spanContext(), this.#api)),
      stored: (answers) =>
        this.#end(span, () => {
          if (answers.length === 1) span?.setAttributes(storedAttributes(answers[0] as Enqueued));
        }),
      failed: (error) => this.#end(span, () => this.#fail(span, toStoredError(error))),
    };
  }

  run(job: ClaimedJob): RunSpan {
    const { trace, context, ROOT_CONTEXT } = this.#api;
    const span = this.#startRun(job, this.#now());
    let endedAt: Date | undefined;
    return {
      within: (handler) => (span === null ? handler() : context.with(trace.setSpan(ROOT_CONTEXT, span), handler)),
      stopped: () => {
        endedAt = this.#now();
      },
      settled: (settlement) => this.#endRun(span, settlement, endedAt),
      lost: (why) =>
        this.#end(
          span,
          () => {
            span?.setAttribute('mulligan.outcome', why);
            span?.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: LOST[why] });
          },
          endedAt,
        ),
    };
  }

  crashed(job: ClaimedJob, settlement: Settlement): void {
    const span = this.#startRun(job, new Date(settlement.startedAt));
    this.#endRun(span, settlement, new Date(settlement.endedAt));
  }

  #startRun(job: ClaimedJob, startTime: Date): Api.Span | null {
    const { trace, ROOT_CONTEXT, SpanKind } = this.#api;
    const sent = job.trace === null ? undefined : this.#safely(() => parseTrace(job.trace as string, this.#api));
    const options = { kind: SpanKind.CONSUMER, attributes: runAttributes(job), startTime };
    const name = `process ${job.name}`;
    if (sent === undefined) return this.#start(name, options, ROOT_CONTEXT);
    return this.#start(name, { ...options, links: [{ context: sent }] }, trace.setSpanContext(ROOT_CONTEXT, sent));
  }

  #endRun(span: Api.Span | null, { outcome, decision, error }: Settlement, at: Date | undefined): void {
    const end = (): void => {
      span?.setAttributes({
        'mulligan.outcome': outcome,
        'mulligan.decision': decision.kind,
        'mulligan.rule': decision.rule,
        ...('delayMs' in decision && { 'mulligan.delay_ms': decision.delayMs }),
        ...(decision.kind === 'dead' && { 'mulligan.dead_reason': decision.reason }),
      });
      if (outcome === 'failed' || outcome === 'deferred' || outcome === 'crashed') this.#fail(span, error, at);
    };
    this.#end(span, end, at);
  }

  /** What is stored of an error is bounded and has no credentials in it; so that is what a span is told. */
  #fail(span: Api.Span | null, error: StoredError | null, at?: Date): void {
    const { SpanStatusCode } = this.#api;
    if (error === null) {
      span?.setStatus({ code: SpanStatusCode.ERROR });
      return;
    }
    const { name, message, stack } = error;
    span?.recordException({ name, message, ...(stack && { stack }) }, at);
    span?.setAttribute('error.type', name);
    span?.setStatus({ code: SpanStatusCode.ERROR, message: `${name}: ${message}` });
  }

  #start(name: string, options: Api.SpanOptions, parent: Api.Context): Api.Span | null {
    return this.#safely(() => this.#tracer.startSpan(name, options, parent)) ?? null;
  }

  #end(span: Api.Span | null, describe: () => void, at: Date = this.#now()): void {
    this.#safely(() => {
      describe();
      span?.end(at);
    });
  }

  #now(): Date {
    return new Date(this.#clock.now());
  }

  /** A tracer that throws must not cost a job. */
  #safely<Answer>(action: () => Answer): Answer | undefined {
    try {
      return action();
    } catch (error) {
      if (!this.#hasFailed) this.#onError(error);
      this.#hasFailed = true;
      return undefined;
    }
  }
}

const LOST = {
  'lease-lost': 'another worker has the job; this result was dropped',
  'settle-failed': 'the outcome could not be recorded; the job will run again',
} as const;

function sendAttributes(name: string, queue: string, count: number): Api.Attributes {
  return {
    'messaging.system': 'mulligan',
    'messaging.operation.name': 'send',
    'messaging.operation.type': 'send',
    'messaging.destination.name': queue,
    'mulligan.job.name': name,
    ...(count > 1 && { 'messaging.batch.message_count': count }),
  };
}

function storedAttributes({ id, existed }: Enqueued): Api.Attributes {
  return { 'messaging.message.id': id, ...(existed && { 'mulligan.existed': true }) };
}

function runAttributes({ id, name, queue, worker, run, attempts, policy, lane, priority }: ClaimedJob): Api.Attributes {
  return {
    'messaging.system': 'mulligan',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.destination.name': queue,
    'messaging.message.id': id,
    'messaging.client.id': worker,
    'mulligan.job.name': name,
    'mulligan.run': run,
    'mulligan.attempt': attempts,
    'mulligan.max_attempts': policy.maxAttempts,
    'mulligan.lane': lane,
    'mulligan.priority': priority,
  };
}

const TRACE = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?: (.*))?$/;
/** More than that is left out: it is stored with every job. The W3C asks for at least so much. */
const LONGEST_STATE = 512;

/** A W3C traceparent and, after a space, the tracestate if there is one. Undefined when the span is none. */
function formatTrace(
  { traceId, spanId, traceFlags, traceState }: Api.SpanContext,
  api: typeof Api,
): string | undefined {
  if (!api.isSpanContextValid({ traceId, spanId, traceFlags })) return undefined;
  const parent = `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`;
  const state = traceState?.serialize() ?? '';
  return state === '' || state.length > LONGEST_STATE ? parent : `${parent} ${state}`;
}

/** Undefined for a text that is none: another program may have written it. */
function parseTrace(text: string, api: typeof Api): Api.SpanContext | undefined {
  const [, traceId, spanId, flags, state] = TRACE.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  const sent = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  if (!api.isSpanContextValid(sent)) return undefined;
  return state === undefined ? sent : { ...sent, traceState: api.createTraceState(state) };
}
