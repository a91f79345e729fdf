import { describe, expect, inject, it } from 'vitest';
import { hunt, watchers } from './postgres-hunt.ts';
import { type PostgresMutant, postgresMutants } from './postgres-mutants.ts';

/** `npm run mutants:postgres` tries them all and prints what noticed each. */
const all = process.env.MULLIGAN_MUTANTS !== undefined;
const tried = all ? postgresMutants : postgresMutants.filter(({ test }) => test !== undefined).slice(0, 2);

const tests = tried.flatMap(({ test }) => test ?? []);

it('the tests that notice these mistakes pass on a copy without a mistake', async () => {
  const [{ file, find }] = postgresMutants as [PostgresMutant];
  const none = { name: 'no mistake', file, find, replace: find };
  expect(await hunt(none, inject('postgresUrl'), ['concurrency'], ['-t', tests.join('|')])).toBeNull();
});

describe('a test or the simulation notices when, on PostgreSQL,', () => {
  for (const mutant of tried) {
    it(mutant.name, async () => {
      const { by, test } = mutant;
      const order = all ? [by, ...watchers.filter((one) => one !== by)] : [by];
      const noticed = await hunt(mutant, inject('postgresUrl'), order, all ? [] : ['-t', test as string]);
      if (all) console.log(`${mutant.name}: ${noticed === null ? 'NOT NOTICED' : `${noticed.by}: ${noticed.how}`}`);
      expect(noticed).not.toBeNull();
    }, 900_000);
  }
});
