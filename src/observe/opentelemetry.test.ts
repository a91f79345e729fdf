import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { type Attributes, context, createTraceState, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withStore } from '../../test/support/sqlite-file.ts';
import { defineJob, Mulligan, Unrecoverable } from '../index.ts';
import { claimRequest, newJob } from '../store/conformance/builders.ts';
import { MemoryStore } from '../store/memory/store.ts';
import { testQueue } from '../testing/queue.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { type TracerLike, traceIdOf } from './tracing.ts';

beforeAll(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager()));
afterAll(() => context.disable());

/** A real SDK whose exporter keeps the spans. */
function recorder() {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  return { tracer: provider.getTracer('test'), spans: () => exporter.getFinishedSpans(), provider };
}

const flaky = defineJob<{ fails: number }>({
  name: 'email.send',
  queue: 'emails',
  retry: { maxAttempts: 3, backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' },
  run({ fails }, { attempt }) {
    if (attempt <= fails) throw Object.assign(new Error('HTTP 503'), { status: 503 });
  },
});

function named(spans: readonly ReadableSpan[], name: string): ReadableSpan[] {
  return spans.filter((span) => span.name === name);
}

function own({ attributes }: ReadableSpan): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([name]) => name.startsWith('mulligan.')));
}

describe('a traced job', () => {
  it('that fails twice and succeeds has a span per run, under the enqueue in another process', async () => {
    await withStore(async ({ store, clock }) => {
      const producer = recorder();
      const consumer = recorder();
      const sending = await Mulligan.open(store, { clock, tracing: producer.tracer });
      const { id } = await sending.enqueue(flaky, { fails: 2 });
      const working = await Mulligan.open(store, { clock, jobs: [flaky], tracing: consumer.tracer, log: () => {} });
      const worker = working.work();
      const completed = new Promise((resolve) => working.on('completed', resolve));
      let isDone = false;
      void completed.then(() => (isDone = true));
      while (!isDone) await clock.advance(500);

      const [send] = producer.spans();
      expect(producer.spans().map(({ name, kind }) => ({ name, kind }))).toEqual([
        { name: 'send email.send', kind: SpanKind.PRODUCER },
      ]);
      expect(send?.attributes).toEqual({
        'messaging.system': 'mulligan',
        'messaging.operation.name': 'send',
        'messaging.operation.type': 'send',
        'messaging.destination.name': 'emails',
        'messaging.message.id': id,
        'mulligan.job.name': 'email.send',
      });
      const runs = consumer.spans();
      const { traceId, spanId } = (send as ReadableSpan).spanContext();
      for (const run of runs) {
        expect(run).toMatchObject({ name: 'process email.send', kind: SpanKind.CONSUMER });
        expect(run.spanContext().traceId).toBe(traceId);
        expect(run.parentSpanContext).toMatchObject({ spanId, isRemote: true });
        expect(run.links.map(({ context: linked }) => linked.spanId)).toEqual([spanId]);
        expect(run.attributes).toMatchObject({
          'messaging.system': 'mulligan',
          'messaging.operation.name': 'process',
          'messaging.operation.type': 'process',
          'messaging.destination.name': 'emails',
          'messaging.message.id': id,
          'messaging.client.id': worker.id,
        });
      }
      const common = { 'mulligan.job.name': 'email.send', 'mulligan.max_attempts': 3, 'mulligan.priority': 5 };
      const failed = { 'mulligan.outcome': 'failed', 'mulligan.decision': 'retry', 'mulligan.rule': 'http:503' };
      expect(runs.map(own)).toEqual([
        {
          ...common,
          ...failed,
          'mulligan.run': 1,
          'mulligan.attempt': 1,
          'mulligan.lane': 'fresh',
          'mulligan.delay_ms': 1_000,
        },
        {
          ...common,
          ...failed,
          'mulligan.run': 2,
          'mulligan.attempt': 2,
          'mulligan.lane': 'retry',
          'mulligan.delay_ms': 1_000,
        },
        {
          ...common,
          'mulligan.run': 3,
          'mulligan.attempt': 3,
          'mulligan.lane': 'retry',
          'mulligan.outcome': 'completed',
          'mulligan.decision': 'complete',
          'mulligan.rule': 'completed',
        },
      ]);
      expect(runs.map(({ status }) => status)).toEqual([
        { code: SpanStatusCode.ERROR, message: 'Error: HTTP 503' },
        { code: SpanStatusCode.ERROR, message: 'Error: HTTP 503' },
        { code: SpanStatusCode.UNSET },
      ]);
      expect(runs.map(({ events }) => events.map(({ name }) => name))).toEqual([['exception'], ['exception'], []]);
      const [job] = await store.get([id]);
      expect(traceIdOf(job?.trace as string)).toBe(traceId);
      const closed = working.close();
      while ((await Promise.race([closed.then(() => 'closed'), clock.advance(100)])) !== 'closed');
    });
  });

  it('runs its handler inside the span of its run, and so do the jobs that it enqueues', async () => {
    const { tracer, spans } = recorder();
    const child = defineJob<null>({ name: 'child', run() {} });
    const parent = defineJob<null>({
      name: 'parent',
      async run(_, { enqueue }) {
        tracer.startSpan('own work').end();
        await new Promise((resolve) => setImmediate(resolve));
        await enqueue(child, null);
      },
    });
    await using queue = await testQueue({ jobs: [parent, child], tracing: tracer });
    await queue.mulligan.enqueue(parent, null);
    await queue.drain();
    const parentOf = (name: string): string | undefined => {
      const [span] = named(spans(), name);
      return spans().find((one) => one.spanContext().spanId === span?.parentSpanContext?.spanId)?.name;
    };
    expect(['own work', 'send child', 'process child', 'process parent', 'send parent'].map(parentOf)).toEqual([
      'process parent',
      'process parent',
      'send child',
      'send parent',
      undefined,
    ]);
  });

  it('ends its span when its handler ends, however long recording takes', async () => {
    const { tracer, spans } = recorder();
    const slow = defineJob<null>({
      name: 'slow',
      run: () => pause(3_000),
    });
    const clock = new VirtualClock();
    const pause = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
    const store = new MemoryStore({ clock });
    const settle = store.settle.bind(store);
    store.settle = async (settlements) => {
      await pause(1_000);
      return settle(settlements);
    };
    await using mulligan = await Mulligan.open(store, { jobs: [slow], clock, tracing: tracer });
    await mulligan.enqueue(slow, null);
    const completed = new Promise((resolve) => mulligan.on('completed', resolve));
    const worker = mulligan.work();
    await clock.advance(5_000);
    await completed;
    const [run] = named(spans(), 'process slow');
    expect(run?.duration).toEqual([3, 0]);
    await worker.stop();
  });

  it('that dies says why, with an error that holds no credentials', async () => {
    const { tracer, spans } = recorder();
    const doomed = defineJob<null>({
      name: 'doomed',
      run() {
        throw new Unrecoverable('no account at https://user:secret@example.com/');
      },
    });
    await using queue = await testQueue({ jobs: [doomed], tracing: tracer });
    await queue.mulligan.enqueue(doomed, null);
    await queue.drain();
    const [run] = named(spans(), 'process doomed');
    expect(run?.attributes).toMatchObject({
      'mulligan.outcome': 'failed',
      'mulligan.decision': 'dead',
      'mulligan.dead_reason': 'unrecoverable',
      'mulligan.rule': 'thrown:Unrecoverable',
      'error.type': 'Unrecoverable',
    });
    expect(run?.events[0]?.attributes?.['exception.message']).toContain('no account at');
    expect(JSON.stringify([run?.events, run?.status, run?.attributes])).not.toContain('secret');
  });

  it('whose process died has a span by the worker that rescues it', async () => {
    const { tracer, spans } = recorder();
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=1';
    await store.enqueue([newJob({ trace })]);
    await store.claim(claimRequest({ worker: 'gone', leaseMs: 60_000 }));
    await using mulligan = await Mulligan.open(store, { clock, tracing: tracer, log: () => {} });
    const worker = mulligan.work({ queues: ['other'] });
    await clock.advance(120_000);
    const [run] = named(spans(), 'process email.send');
    expect(run?.attributes).toMatchObject({
      'messaging.client.id': 'gone',
      'mulligan.outcome': 'crashed',
      'mulligan.decision': 'retry',
      'mulligan.rule': 'crash 1 of 3',
    });
    expect(run?.status.code).toBe(SpanStatusCode.ERROR);
    expect(run?.spanContext().traceId).toBe('0af7651916cd43dd8448eb211c80319c');
    expect(run?.links[0]?.context.traceState?.serialize()).toBe('vendor=1');
    await worker.stop();
  });

  it('whose trace is no traceparent begins a trace of its own', async () => {
    const { tracer, spans } = recorder();
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    await store.enqueue([
      newJob({ trace: 'nonsense' }),
      newJob({ trace: `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01` }),
    ]);
    const job = defineJob<unknown>({ name: 'email.send', run() {} });
    await using mulligan = await Mulligan.open(store, { jobs: [job], clock, tracing: tracer });
    const worker = mulligan.work();
    await clock.advance(1_000);
    expect(spans().map(({ parentSpanContext, links }) => [parentSpanContext, links])).toEqual([
      [undefined, []],
      [undefined, []],
    ]);
    await worker.stop();
  });
});

describe('a traced enqueue', () => {
  it('of many jobs is one span, which all of them carry', async () => {
    const { tracer, spans } = recorder();
    await using queue = await testQueue({ jobs: [flaky], tracing: tracer });
    await queue.mulligan.enqueueMany(flaky, [{ input: { fails: 0 } }, { input: { fails: 0 } }]);
    await queue.mulligan.enqueueMany(flaky, []);
    await queue.drain();
    const sent = named(spans(), 'send email.send');
    expect(sent.map(({ attributes }) => attributes['messaging.batch.message_count'])).toEqual([2]);
    const links = named(spans(), 'process email.send').map((run) => run.links[0]?.context.spanId);
    expect(links).toEqual([sent[0]?.spanContext().spanId, sent[0]?.spanContext().spanId]);
  });

  it('is a child of the span around it, and carries its tracestate', async () => {
    const { tracer, spans } = recorder();
    await using queue = await testQueue({ jobs: [flaky], tracing: tracer });
    const around = trace.setSpanContext(context.active(), {
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      spanId: '00f067aa0ba902b7',
      traceFlags: 1,
      traceState: createTraceState('vendor=1'),
    });
    const { id } = await context.with(around, () => queue.mulligan.enqueue(flaky, { fails: 0 }));
    const [send] = spans();
    expect(send?.parentSpanContext?.spanId).toBe('00f067aa0ba902b7');
    const job = await queue.mulligan.jobs.get(id);
    expect(job?.trace).toBe(`00-4bf92f3577b34da6a3ce929d0e0e4736-${send?.spanContext().spanId}-01 vendor=1`);
  });

  it('whose key is taken says which job holds it', async () => {
    const { tracer, spans } = recorder();
    await using queue = await testQueue({ jobs: [flaky], tracing: tracer });
    const first = await queue.mulligan.enqueue(flaky, { fails: 0 }, { key: 'k' });
    await queue.mulligan.enqueue(flaky, { fails: 0 }, { key: 'k' });
    expect(named(spans(), 'send email.send')[1]?.attributes).toMatchObject({
      'messaging.message.id': first.id,
      'mulligan.existed': true,
    });
  });

  it('that fails is an error', async () => {
    const { tracer, spans } = recorder();
    const store = new MemoryStore();
    store.enqueue = () => Promise.reject(new TypeError('the store is broken'));
    await using mulligan = await Mulligan.open(store, { tracing: tracer });
    await expect(mulligan.enqueue(flaky, { fails: 0 })).rejects.toThrow('the store is broken');
    expect(spans()[0]?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'TypeError: the store is broken' });
  });
});

describe('tracing', () => {
  it('by a tracer that throws costs no job, and is logged', async () => {
    const messages: string[] = [];
    const tracing: TracerLike = {
      startSpan() {
        throw new Error('no span today');
      },
    };
    await using queue = await testQueue({ jobs: [flaky], tracing, log: ({ message }) => messages.push(message) });
    const { id } = await queue.mulligan.enqueue(flaky, { fails: 0 });
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'completed', trace: null });
    expect(messages).toEqual(['the tracer threw; spans are missing (logged once)']);
  });

  it.each(['yes', {}, { startSpan: 1 }])('is refused when it is %j', async (tracing) => {
    await expect(Mulligan.open('memory:', { tracing: tracing as never })).rejects.toThrow(
      'Mulligan.open: tracing: expected true, false, or a tracer of @opentelemetry/api, got',
    );
  });

  it('is off when it is false', async () => {
    const { spans, provider } = recorder();
    trace.setGlobalTracerProvider(provider);
    try {
      await using mulligan = await Mulligan.open('memory:', { tracing: false });
      await mulligan.enqueue('any', null);
      expect(spans()).toEqual([]);
    } finally {
      trace.disable();
    }
  });

  it('warns once where no SDK has registered, and works once one has', async () => {
    const messages: string[] = [];
    const log = ({ message }: { message: string }) => messages.push(message);
    await using queue = await testQueue({ jobs: [flaky], tracing: true, log });
    await queue.mulligan.enqueue(flaky, { fails: 0 });
    await queue.drain();
    const { spans, provider } = recorder();
    trace.setGlobalTracerProvider(provider);
    try {
      await using _ = await testQueue({ jobs: [flaky], tracing: true, log });
      await queue.mulligan.enqueue(flaky, { fails: 0 });
      expect(named(spans(), 'send email.send')).toHaveLength(1);
    } finally {
      trace.disable();
    }
    expect(messages).toEqual([
      'tracing is true, but no OpenTelemetry SDK has registered a tracer provider: no spans are made until one does',
    ]);
  });

  it('loads OpenTelemetry only when it is asked for, and says so when there is none', async () => {
    const script = `
      import { registerHooks } from 'node:module';
      registerHooks({
        resolve(specifier, context, next) {
          if (specifier.startsWith('@opentelemetry/')) throw new Error('not installed: ' + specifier);
          return next(specifier, context);
        },
      });
      const { Mulligan } = await import(${JSON.stringify(new URL('../index.ts', import.meta.url).href)});
      const mulligan = await Mulligan.open('memory:');
      await mulligan.enqueue('any', null);
      await mulligan.close();
      await Mulligan.open('memory:', { tracing: true }).catch((error) => console.log(error.message));`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    expect(stdout).toBe('Mulligan.open: tracing: expected the package @opentelemetry/api, found none. Install it.\n');
  });

  it('reaches an OTLP collector', async () => {
    const received: { url: string | undefined; body: string }[] = [];
    const collector = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text) => (body += text));
      request.on('end', () => {
        received.push({ url: request.url, body });
        response.setHeader('content-type', 'application/json').end('{}');
      });
    });
    collector.listen(0, '127.0.0.1');
    await once(collector, 'listening');
    const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/traces`;
    const exporter = new OTLPTraceExporter({ url });
    const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
    trace.setGlobalTracerProvider(provider);
    try {
      await using queue = await testQueue({ jobs: [flaky], tracing: true });
      await queue.mulligan.enqueue(flaky, { fails: 2 });
      await queue.drain();
      await provider.forceFlush();
      const spans = received.flatMap(({ body }) =>
        (JSON.parse(body) as OtlpBody).resourceSpans.flatMap(({ scopeSpans }) =>
          scopeSpans.flatMap((scope) => scope.spans.map((span) => ({ ...span, scope: scope.scope.name }))),
        ),
      );
      expect(received.every((request) => request.url === '/v1/traces')).toBe(true);
      expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
      expect(spans.map(({ name, scope }) => `${scope}: ${name}`).sort()).toEqual([
        'mulligan: process email.send',
        'mulligan: process email.send',
        'mulligan: process email.send',
        'mulligan: send email.send',
      ]);
    } finally {
      trace.disable();
      await provider.shutdown();
      collector.closeAllConnections();
      collector.close();
    }
  });
});

interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string };
      readonly spans: readonly { readonly name: string; readonly traceId: string }[];
    }[];
  }[];
}
