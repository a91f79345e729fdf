import fc from 'fast-check';

/** How many cases each entry gets in every `npm test`. MULLIGAN_FUZZ=20 runs twenty times as many. */
export const cases = {
  'defineJob: options': 1_500,
  'Mulligan.open: options': 750,
  'Mulligan.open: targets': 300,
  'Mulligan.open: files': 12,
  'enqueue: options': 1_500,
  'enqueue: targets': 500,
  'enqueue: payloads': 1_000,
  'enqueueMany: inputs': 500,
  'payload: round trip': 1_000,
  'work: options': 750,
  'stop: options': 150,
  'close: options': 250,
  'jobs: ids': 300,
  'jobs.list, dead.list: options': 750,
  'dead.redrive, dead.discard: options': 750,
  'errors.list: options': 500,
  'errors.show: fingerprint': 250,
  'queues: names': 250,
  'retry: options': 750,
  'retry: durations': 1_000,
  'retry: what handlers throw on purpose': 250,
  'retry: messages of what handlers throw on purpose': 150,
  'schemas: answers': 1_000,
  'schemas: before a run': 250,
  'handlers: thrown': 300,
  'handlers: context': 200,
  'handlers: effects': 150,
  'handlers: hooks': 200,
  'events: on': 500,
  'options: read once': 250,
  'testing: parts': 150,
  'testing: options': 150,
  'cli: arguments': 300,
  'cli: policy': 200,
  'cli: payloads': 15,
  'cli: processes': 3,
  'sqlite: enqueue': 150,
  'sqlite: operate': 150,
  'sqlite: handlers': 50,
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
