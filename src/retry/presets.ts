import type { RetryOptions } from './policy.ts';

export type PresetName =
  | 'standard'
  | 'financial'
  | 'lowLatency'
  | 'oneShot'
  | 'requeue'
  | 'harbor'
  | 'chronos'
  | 'sweep'
  | 'patient';

/**
 * Policies by name, each one line to use and to change:
 *
 *     retry: policies.financial
 *     retry: { ...policies.financial, maxAttempts: 8 }
 *     retry: { ...policies.chronos, backoff: { kind: 'fibonacci', base: '1m', max: '1h' } }
 */
export const policies: Readonly<Record<PresetName, RetryOptions>> = freeze({
  /** The default. */
  standard: {
    maxAttempts: 4,
    backoff: { kind: 'exponential', base: '500ms', factor: 2, max: '30s' },
    jitter: 'full',
  },
  financial: {
    maxAttempts: 6,
    backoff: { kind: 'exponential', base: '1s', factor: 2, max: '60s' },
    jitter: 'full',
  },
  lowLatency: {
    maxAttempts: 3,
    backoff: { kind: 'exponential', base: '100ms', factor: 2, max: '5s' },
    jitter: 'full',
  },
  oneShot: { maxAttempts: 1 },
  requeue: {
    maxAttempts: 5,
    backoff: { kind: 'exponential', base: '1s', factor: 4 },
    jitter: 'none',
  },
  harbor: {
    maxAttempts: 25,
    backoff: { kind: 'exponential', base: '200ms', factor: 2, max: '5s' },
    jitter: { spread: 0.2 },
  },
  chronos: {
    maxAttempts: 4,
    backoff: { kind: 'exponential', base: '60s', factor: 2, max: '1h' },
    jitter: { spread: 0.2 },
  },
  sweep: {
    maxAttempts: 3,
    backoff: { kind: 'fixed', base: '10s' },
    jitter: 'none',
  },
  /*
   * For what must survive a long outage. 20 attempts leave 19 delays: ten that double from 30 s to
   * 15,360 s (30 x 1,023 = 30,690 s), then nine at the cap of 7 h (9 x 25,200 = 226,800 s):
   * 257,490 s, 2.98 days. Full jitter halves that on average: 98 of 100 jobs that fail every time
   * give up after 21 to 50 hours.
   */
  patient: {
    maxAttempts: 20,
    backoff: { kind: 'exponential', base: '30s', factor: 2, max: '7h' },
    jitter: 'full',
  },
});

/** Presets are shared by everyone who imports them; a changed one is made by spreading it. */
function freeze(presets: Record<PresetName, RetryOptions>): Readonly<Record<PresetName, RetryOptions>> {
  for (const { backoff, jitter } of Object.values(presets)) {
    Object.freeze(backoff);
    Object.freeze(jitter);
  }
  for (const preset of Object.values(presets)) Object.freeze(preset);
  return Object.freeze(presets);
}
