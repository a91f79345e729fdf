import { describe, expect, inject, it } from 'vitest';
import { hunt, watchers } from './postgres-hunt.ts';
import { postgresMutants } from './postgres-mutants.ts';

/** `npm run mutants:postgres` tries them all and prints what noticed each. */
const all = process.env.MULLIGAN_MUTANTS !== undefined;

describe('a test or the simulation notices when, on PostgreSQL,', () => {
  for (const mutant of postgresMutants.filter(({ quick }) => all || quick)) {
    it(mutant.name, async () => {
      const order = all ? [mutant.by, ...watchers.filter((one) => one !== mutant.by)] : [mutant.by];
      const noticed = await hunt(mutant, inject('postgresUrl'), order);
      if (all) console.log(`${mutant.name}: ${noticed === null ? 'NOT NOTICED' : `${noticed.by}: ${noticed.how}`}`);
      expect(noticed).not.toBeNull();
    }, 900_000);
  }
});
