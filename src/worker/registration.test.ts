import { expect, it } from 'vitest';
import { SEEN_EVERY_MS, type WorkerDescription } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Registration } from './registration.ts';

function start(rollUp: () => Promise<{ isDone: boolean }>) {
  const clock = new VirtualClock();
  const errors: unknown[] = [];
  const store = { register: async () => {}, rollUp };
  const describe = () => ({}) as WorkerDescription;
  const registration = new Registration(store, clock, 'w', describe, (error) => errors.push(error));
  registration.start();
  return { clock, registration, errors };
}

it('adds up the history as often as it registers, part by part until it is done', async () => {
  let calls = 0;
  const { clock, registration } = start(async () => ({ isDone: ++calls % 3 === 0 }));
  await clock.advance(2 * SEEN_EVERY_MS);
  expect(calls).toBeGreaterThanOrEqual(3);
  expect(calls % 3).toBe(0);
  await registration.stop();
});

it('stops between two parts when the worker stops', async () => {
  const first = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<{ isDone: boolean }>();
  let calls = 0;
  const { clock, registration } = start(() => {
    calls++;
    first.resolve();
    return answer.promise;
  });
  await clock.advance(2 * SEEN_EVERY_MS);
  await first.promise;
  const stopped = registration.stop();
  answer.resolve({ isDone: false });
  await stopped;
  expect(calls).toBe(1);
});

it('reports what fails, and tries again the next time', async () => {
  let calls = 0;
  const { clock, registration, errors } = start(async () => {
    if (++calls === 1) throw new Error('away');
    return { isDone: true };
  });
  await clock.advance(4 * SEEN_EVERY_MS);
  expect(errors).toHaveLength(1);
  expect(calls).toBeGreaterThanOrEqual(2);
  await registration.stop();
});
