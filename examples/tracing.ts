// One trace for a request, the job that it enqueues, and every run of that job; printed as a tree.
// Needs an OpenTelemetry SDK: npm install @opentelemetry/api @opentelemetry/sdk-trace @opentelemetry/context-async-hooks

import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { defineJob, Mulligan } from 'mulligan';

// In an application: a BatchSpanProcessor with an OTLPTraceExporter, in a module that is loaded first.
const exporter = new InMemorySpanExporter();
const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
trace.setGlobalTracerProvider(provider);
context.setGlobalContextManager(new AsyncLocalStorageContextManager());
const tracer = trace.getTracer('shop');

const sendReceipt = defineJob<{ order: number }>({
  name: 'receipt.send',
  queue: 'emails',
  retry: { backoff: { kind: 'exponential', base: '100ms' }, jitter: 'none' },
  async run({ order }, { attempt }) {
    // The handler runs inside the span of its run: what it does becomes a child of it.
    await tracer.startActiveSpan('POST mail.example.com', async (span) => {
      span.setAttribute('order', order);
      span.end();
    });
    if (attempt === 1) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    if (attempt === 2) throw Object.assign(new Error('HTTP 503'), { status: 503 });
  },
});

const mulligan = await Mulligan.open('memory:', { jobs: [sendReceipt], tracing: true });
const done = Promise.withResolvers<unknown>();
mulligan.on('completed', done.resolve);
mulligan.work();
await tracer.startActiveSpan('POST /orders', async (span) => {
  await mulligan.enqueue(sendReceipt, { order: 7 });
  span.end();
});
await done.promise;
await mulligan.close();

const spans = exporter.getFinishedSpans();
const told = ['attempt', 'lane', 'outcome', 'decision', 'rule', 'delay_ms'].map((name) => `mulligan.${name}`);
const print = (span: ReadableSpan, indent: string): void => {
  const facts = told.flatMap((name) =>
    name in span.attributes ? [`${name.slice('mulligan.'.length)}=${span.attributes[name]}`] : [],
  );
  const status = span.status.code === SpanStatusCode.ERROR ? `ERROR ${span.status.message}` : '';
  console.log([`${indent}${span.name}`, ...facts, status].filter((part) => part !== '').join('  '));
  for (const child of spans.filter(({ parentSpanContext }) => parentSpanContext?.spanId === span.spanContext().spanId))
    print(child, `${indent}  `);
};
for (const root of spans.filter(({ parentSpanContext }) => parentSpanContext === undefined)) print(root, '');
