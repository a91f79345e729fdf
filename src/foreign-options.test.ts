import { expect, it } from 'vitest';
import { defineJob } from './definition.ts';
import { Mulligan } from './mulligan.ts';
import type { RetryOptions } from './retry/policy.ts';

const run = (): void => {};
const backoff = (given: object): object => ({ retry: { backoff: given as RetryOptions['backoff'] } });

it.each<[string, object, string]>([
  ['jobId', { jobId: 'a' }, 'enqueue: there is no option "jobId". Here it is key. One live job has it at a time.'],
  ['attempts', { attempts: 3 }, '"attempts". Here it is retry: { maxAttempts }. The first attempt counts, too.'],
  ['maxAttempts', { maxAttempts: 3 }, '"maxAttempts". Here it is retry: { maxAttempts }.'],
  [
    'removeOnComplete',
    { removeOnComplete: true },
    '"removeOnComplete". Here it is retention: { completed } of defineJob.',
  ],
  ['removeOnFail', { removeOnFail: 5 }, '"removeOnFail". Here it is retention: { dead } of defineJob.'],
  ['backoff', { backoff: 5 }, '"backoff". Here it is retry: { backoff }. Such as'],
  ['repeat', { repeat: {} }, '"repeat". Here it is schedules of Mulligan.open. Or mulligan.schedules.'],
  ['singletonKey', { singletonKey: 'a' }, '"singletonKey". Here it is key.'],
  ['singletonSeconds', { singletonSeconds: 5 }, '"singletonSeconds". Here it is throttle. Together with key.'],
  ['retryLimit', { retryLimit: 2 }, '"retryLimit". Here it is retry: { maxRetries }.'],
  ['retryDelay', { retryDelay: 2 }, '"retryDelay". Here it is retry: { backoff: { base } }.'],
  ['startAfter', { startAfter: 5 }, '"startAfter". Here it is delay. Or at, with a Date.'],
  [
    'expireInSeconds',
    { expireInSeconds: 5 },
    '"expireInSeconds". Here it is timeout of defineJob. A duration, such as \'5m\'.',
  ],
  ['jobKey', { jobKey: 'a' }, '"jobKey". Here it is key.'],
  ['runAt', { runAt: new Date() }, '"runAt". Here it is at. A Date; or delay.'],
  ['queueName', { queueName: 'a' }, '"queueName". Here it is queue.'],
  ['a type of backoff', backoff({ type: 'fixed' }), 'retry.backoff: there is no option "type". Here it is kind.'],
  ['its delay', backoff({ kind: 'fixed', delay: 5 }), 'retry.backoff: there is no option "delay". Here it is base.'],
  ['a name like none', { nonsense: 5 }, 'enqueue: there is no option "nonsense". Valid options: delay, at,'],
  ['a misspelt name', { dealy: 5 }, 'enqueue: there is no option "dealy". Did you mean delay?'],
])('an enqueue with %s is told our name for it', async (_, options, complaint) => {
  await using mulligan = await Mulligan.open('memory:', { log: () => {} });
  await expect(mulligan.enqueue('a', null, options)).rejects.toThrow(complaint);
});

it.each<[object, string]>([
  [{ removeOnComplete: true }, 'Here it is retention: { completed }. Such as'],
  [{ attempts: 3 }, 'Here it is retry: { maxAttempts }.'],
  [{ expireInSeconds: 3 }, 'Here it is timeout. A duration'],
  [{ limiter: { max: 3 } }, 'Here it is limit. With a rate'],
  [{ jobId: 'a' }, 'Here it is key of enqueue.'],
])('a definition with %o is told our name for it', (options, complaint) => {
  expect(() => defineJob({ name: 'a', run, ...options })).toThrow(complaint);
});

it.each<[object, string]>([
  [{ lockDuration: 30_000 }, 'Here it is lease.'],
  [{ teamSize: 3 }, 'Here it is concurrency.'],
  [{ pollInterval: 3 }, 'Here it is poll.'],
  [{ limiter: {} }, 'Here it is limit of defineJob.'],
])('a worker with %o is told our name for it', async (options, complaint) => {
  await using mulligan = await Mulligan.open('memory:', { log: () => {} });
  expect(() => mulligan.work(options)).toThrow(complaint);
});
