import { describe, expect, inject, it } from 'vitest';
import { Mulligan } from '../../src/index.ts';
import { jobs, quick } from '../processes/jobs.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { checkLedgers } from './ledger-check.ts';

const server = inject('postgresUrl');
const quiet = { jobs, log: () => {} };

describe('tables that are replaced under a live process', () => {
  it.each(['dropped and made again', 'restored from a dump'])(
    'are noticed when they were %s: every job lands in its own queue, and is run',
    async (how) => {
      await using database = await TestDatabase.create(server);
      await using live = await Mulligan.open(database.url, quiet);
      // It has cached the numbers of all that is needed, and its connections have prepared statements.
      const before = live.work({ queues: ['tenant-a', 'tenant-b'] });
      for (const queue of ['tenant-a', 'tenant-b']) await live.enqueue(quick, { n: 0 }, { queue });
      await before.whenIdle();
      await before.stop();

      const [identity] = await database.sql('SELECT id FROM mulligan.schema_identity');
      await database.sql('DROP SCHEMA mulligan CASCADE');
      await using other = await Mulligan.open(database.url, quiet);
      if (how === 'restored from a dump') {
        await database.sql('UPDATE mulligan.schema_identity SET id = $1', [(identity as { id: string }).id]);
      }
      // In the new tables the numbers of the two queues are exchanged.
      const acknowledged: string[] = [];
      const queues: string[] = [];
      for (const mulligan of [other, live]) {
        for (const queue of ['tenant-b', 'tenant-a']) {
          acknowledged.push((await mulligan.enqueue(quick, { n: 1 }, { queue })).id);
          queues.push(queue);
        }
      }
      const stored = await Promise.all(acknowledged.map((id) => other.jobs.get(id)));
      expect(stored.map((job) => job?.queue)).toEqual(queues);
      await live.work({ queues: ['tenant-a', 'tenant-b'] }).whenIdle();
      await checkLedgers(other, { acknowledged });
    },
  );
});
