import fc from 'fast-check';

/** How many cases each entry gets in every `npm test`. MULLIGAN_FUZZ=20 runs twenty times as many. */
export const cases = {
  'defineJob: options': 3_000,
  'Mulligan.open: options': 1_500,
  'Mulligan.open: targets': 600,
  'Mulligan.open: files': 25,
  'enqueue: options': 3_000,
  'enqueue: targets': 1_000,
  'enqueue: payloads': 2_000,
  'enqueueMany: inputs': 1_000,
  'payload: round trip': 2_000,
  'work: options': 1_500,
  'stop: options': 300,
  'close: options': 500,
  'jobs: ids': 600,
  'jobs.list, dead.list: options': 1_500,
  'dead.redrive, dead.discard: options': 1_500,
  'errors.list: options': 1_000,
  'errors.show: fingerprint': 500,
  'queues: names': 500,
  'retry: options': 1_500,
  'retry: durations': 2_000,
  'retry: what handlers throw on purpose': 500,
  'retry: messages of what handlers throw on purpose': 300,
  'schemas: answers': 2_000,
  'schemas: before a run': 500,
  'handlers: thrown': 600,
  'handlers: context': 400,
  'handlers: effects': 300,
  'handlers: hooks': 400,
  'events: on': 1_000,
  'options: read once': 500,
  'testing: parts': 300,
  'testing: options': 300,
  'cli: arguments': 1_500,
  'cli: policy': 1_000,
  'cli: payloads': 60,
  'cli: processes': 12,
  'sqlite: enqueue': 300,
  'sqlite: operate': 300,
  'sqlite: handlers': 100,
} as const;

export type Entry = keyof typeof cases;

const times = Number(process.env.MULLIGAN_FUZZ ?? 1);

/** One case that takes this long hangs. */
const HANGS_MS = 60_000;
/** Looking for a smaller one that hangs too must end before the test does, or nobody is told of either. */
const ENOUGH_MS = 150_000;

/** Holds the property to the number of cases its entry is worth. A failure prints its seed and counterexample. */
export async function hold(
  entry: Entry,
  property: fc.IAsyncProperty<never> | fc.IAsyncProperty<unknown>,
): Promise<void> {
  await fc.assert(property as fc.IAsyncProperty<unknown>, {
    numRuns: cases[entry] * times,
    timeout: HANGS_MS,
    interruptAfterTimeLimit: ENOUGH_MS * times,
    markInterruptAsFailure: true,
  });
}
