import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Fleet, type WorkerProcess } from '../processes/fleet.ts';
import { expectSoundFile } from '../support/sound-file.ts';
import { chance } from './chance.ts';
import { checkLedgers } from './ledger-check.ts';
import { Load } from './load.ts';

const HOUR_MS = 3_600_000;
const work = { concurrency: 20, lease: '1s', poll: '50ms' } as const;

/*
 * The store's time is the wall clock of the process that writes. What cannot hold when it steps: a step forward ends
 * leases early, so that a job may run twice at once; what one clock wrote an hour ahead waits for an hour by another.
 */
describe('worker processes whose wall clocks step back and forth by an hour', () => {
  it('lose nothing, settle nothing twice and start nothing before it is due by their own clock', async () => {
    const luck = chance();
    await using fleet = await Fleet.open();
    const start = (): Promise<WorkerProcess> => fleet.start(work, { movableClock: true });
    const crew = await Promise.all([start(), start(), start()]);
    const load = new Load(fleet.mulligan, luck, 2);
    for (let step = 0; step < 30; step++) {
      luck.oneOf(crew).order({ shiftClockMs: luck.oneOf([-HOUR_MS, 0, HOUR_MS]) });
      await sleep(luck.between(50, 250));
    }
    await load.stop();

    // Ahead of whatever any of them has written, everything is due and every lease is over.
    for (const worker of crew) worker.order({ shiftClockMs: 2 * HOUR_MS });
    await fleet.allEnded();
    const { acknowledged, hardy } = load;
    const { jobs } = await checkLedgers(fleet.mulligan, { acknowledged, clocks: 'stepping' });
    expect(jobs.filter(({ id, state }) => hardy.has(id) && state !== 'completed')).toEqual([]);
    expect(crew.map(({ child }) => child.exitCode)).toEqual([null, null, null]);
    expectSoundFile(fleet.path);
  });
});
