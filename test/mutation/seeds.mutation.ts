import { describe, expect, it } from 'vitest';
import { memory, sqlite } from '../../sim/engines.ts';
import { randomScenario } from '../../sim/scenario.ts';
import { simulate } from '../../sim/simulate.ts';

/** A few seeds of the simulation, for mutants that no other test notices. */
describe.each([
  [memory, 20],
  [sqlite, 4],
] as const)('the simulation on the $name store', (engine, seeds) => {
  for (let seed = 1; seed <= seeds; seed++) {
    it(`keeps every promise, seed ${seed}`, async () => {
      const { violations } = await simulate(randomScenario(seed), engine);
      expect(violations.slice(0, 3)).toEqual([]);
    });
  }
});
