import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { type Engine, memory, postgres, sqlite } from '../../sim/engines.ts';
import { jobsOf, playScene } from './run-scene.ts';
import { anyScene, determinedScene } from './steps.ts';

/** More for a long run. */
const TIMES = Number(process.env.MULLIGAN_LIMIT_RUNS ?? 1);
/** A sequence takes minutes to shrink on a server: replay the seed and the path that a failure names, without this. */
const ON_FAILURE = { endOnFailure: true };
const engines: readonly { readonly engine: Engine; readonly runs: number }[] = [
  { engine: memory, runs: 200 },
  { engine: sqlite, runs: 40 },
  { engine: postgres(inject('postgresUrl')), runs: 6 },
];

describe.each(engines)('limits on the $engine.name store', ({ engine, runs }) => {
  it('keep every promise in any sequence of calls, with gates, lanes, priorities, holds and caps', async () => {
    await fc.assert(
      fc.asyncProperty(anyScene, async (scene) => {
        const { violations } = await playScene(engine, scene, jobsOf(scene));
        expect(violations.map(({ text }) => text)).toEqual([]);
      }),
      { numRuns: runs * TIMES, ...ON_FAILURE },
    );
  });

  it('let the same jobs start as those on the memory store where the rules leave no choice', async () => {
    await fc.assert(
      fc.asyncProperty(determinedScene, async (scene) => {
        const jobs = jobsOf(scene);
        const { taken, violations } = await playScene(engine, scene, jobs);
        expect(violations.map(({ text }) => text)).toEqual([]);
        expect(taken).toEqual((await playScene(memory, scene, jobs)).taken);
      }),
      { numRuns: (runs * TIMES) / 2, ...ON_FAILURE },
    );
  });
});
