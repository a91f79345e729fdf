import fc from 'fast-check';
import { afterAll, beforeAll, expect } from 'vitest';
import { MulliganError } from '../../src/index.ts';
import type { Store } from '../../src/store/store.ts';

/* What must hold for every call, whatever it was given. */

const codes = [
  'CONFIG',
  'INPUT',
  'PAYLOAD',
  'CLOSED',
  'LEASE_LOST',
  'STORE_UNAVAILABLE',
  'STORE_BUSY',
  'STORE_INCOMPATIBLE',
];

const LONGEST_MESSAGE = 6_000;

export type Answer<T> = { readonly value: T } | { readonly error: MulliganError };

/**
 * Calls, and answers what came back or the error of ours it ended with. Anything else fails the case: an error of the
 * language, an error of the caller's own code, a rejection that nobody handles, a changed prototype.
 */
export async function answerOf<T>(call: () => T | Promise<T>): Promise<Answer<T>> {
  const answer = await settled(call);
  await turn();
  expectNoRejection();
  expectCleanPrototypes();
  return answer;
}

async function settled<T>(call: () => T | Promise<T>): Promise<Answer<T>> {
  try {
    return { value: await call() };
  } catch (error) {
    expectOurs(error);
    return { error };
  }
}

export function expectOurs(error: unknown): asserts error is MulliganError {
  if (!(error instanceof MulliganError)) {
    throw new Error(`expected an error of ours, got ${fc.stringify(error)}`, { cause: error });
  }
  if (error.constructor === MulliganError) throw new Error('expected one of the classes below MulliganError');
  expect(codes).toContain(error.code);
  expect(error.name).toBe(error.constructor.name);
  if (['CONFIG', 'INPUT', 'PAYLOAD'].includes(error.code)) expect(error.message).toMatch(/expected|there is no|threw/i);
  if (error.message.length > LONGEST_MESSAGE) throw new Error(`a message of ${error.message.length} characters`);
}

/** By then every promise callback has run, and Node.js has told about rejections that nobody handles. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const rejections: unknown[] = [];
const remember = (reason: unknown): void => void rejections.push(reason);

/** For every file here: counts rejections that nobody handles, in place of the test runner's own alarm. */
export function watchRejections(): void {
  let others: ((...args: unknown[]) => void)[] = [];
  beforeAll(() => {
    others = process.listeners('unhandledRejection') as typeof others;
    process.removeAllListeners('unhandledRejection').on('unhandledRejection', remember);
  });
  afterAll(async () => {
    await turn();
    process.off('unhandledRejection', remember);
    for (const listener of others) process.on('unhandledRejection', listener);
    expectNoRejection();
  });
}

export function expectNoRejection(): void {
  const [reason, ...more] = rejections.splice(0);
  if (reason === undefined && more.length === 0) return;
  throw new Error(`a rejection that nobody handled: ${fc.stringify(reason)}`, { cause: reason });
}

const guarded = [
  Object.prototype,
  Array.prototype,
  Function.prototype,
  Map.prototype,
  Promise.prototype,
  Error.prototype,
];
const shapeOf = (): string => guarded.map((prototype) => Reflect.ownKeys(prototype).map(String).join()).join(';');
const before: string = shapeOf();

export function expectCleanPrototypes(): void {
  if (shapeOf() !== before) throw new Error('a prototype was polluted');
}

/** All that can be read about a store, as text to compare. */
export async function contents(store: Store): Promise<string> {
  const { rows } = await store.stats();
  return JSON.stringify([rows, await store.list({ limit: 10_000 }), await store.queues()]);
}

/** The store holds exactly what it held when the call ends badly; `ended` looks at what a good end left. */
export async function allOrNothing<T>(
  store: Store,
  call: () => T | Promise<T>,
  ended: (value: T) => void | Promise<void> = () => {},
): Promise<void> {
  const held = await contents(store);
  const answer = await answerOf(call);
  if ('value' in answer) await ended(answer.value);
  else expect(await contents(store)).toBe(held);
}
