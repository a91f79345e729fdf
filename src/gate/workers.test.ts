import { describe, expect, test } from 'vitest';
import { Gate, jobs } from '../../test/gate/facts.ts';
import { admissibleAt } from './admit.ts';

/** Worker 1 fails, worker 2 sees signs of life. */
const alone = (failures: number): Gate =>
  new Gate().report({ alive: 5, worker: 2 }).report({ environment: failures, worker: 1 });

describe('a worker that fails while others see signs of life', () => {
  test('starts no job behind this gate for a while; the others do', () => {
    const gate = alone(10);
    expect(gate.admit({ worker: 1 })).toBe(0);
    expect(gate.admit({ worker: 2, due: 50 })).toBe(50);
    expect(admissibleAt(gate.state, { pays: 'nothing', worker: 1 }, gate.now)).toBe(gate.now + 1_500);
  });

  test('is no suspect before ten failures in a row', () => {
    expect(alone(9).admit({ worker: 1, due: 50 })).toBe(50);
  });

  test('is no suspect when no other worker reports', () => {
    const gate = new Gate().report({ alive: 5, worker: 1 }).report({ environment: 20, jobs: jobs(2), worker: 1 });
    expect(gate.state.workers).toMatchObject([{ streak: 20, until: 0 }]);
  });

  test('then starts one job at a time, and waits twice as long after each that fails', () => {
    const gate = alone(10).wait(1_500);
    expect(gate.admit({ worker: 1 })).toBe(1);
    gate.report({ environment: 1, worker: 1 });
    expect(gate.wait(2_999).admit({ worker: 1 })).toBe(0);
    expect(gate.wait(1).admit({ worker: 1 })).toBe(1);
  });

  test('is reported when it has failed again after its pause: the first to report an outage looks the same', () => {
    const gate = alone(10).wait(1_500);
    expect(gate.rules).toEqual([]);
    gate.report({ environment: 1, worker: 1 });
    expect(gate.events).toMatchObject([{ change: 'worker-suspect', from: 'closed', to: 'closed' }]);
  });

  test('is judged by nothing but failures and signs of life', () => {
    expect(alone(10).wait(1_500).report({ none: 1, worker: 1 }).admit({ worker: 1 })).toBe(1);
  });

  test('is cleared by one sign of life', () => {
    const gate = alone(10).wait(1_500).report({ alive: 1, worker: 1 });
    expect(gate.admit({ worker: 1, due: 50 })).toBe(50);
  });

  test('is forgotten after ten minutes', () => {
    expect(alone(10).wait(600_000).admit({ worker: 1, due: 50 })).toBe(50);
  });

  test('does not slow down a ramp', () => {
    const gate = new Gate().serve(60, 30).ramp();
    gate.report({ alive: 30, worker: 2 }).report({ environment: 10, worker: 1 });
    expect(gate.state.ramp).toMatchObject({ alive: 30, environment: 0 });
  });

  test('one of many: no more than eight are kept', () => {
    const gate = new Gate().report({ alive: 500, worker: 99 });
    for (let worker = 1; worker <= 20; worker++)
      gate.report({ environment: 1, worker }).report({ alive: 5, worker: 99 });
    expect(gate.state.workers.length).toBe(8);
  });
});
