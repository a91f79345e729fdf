import type { Workload } from '../harness/workload.ts';

const LOOKS = 15;

export const w15: Workload = {
  id: 'W15',
  title: 'Error groups of many dead jobs',
  what:
    '1,000,000 jobs (20,000 in a quick run) died of 12 kinds of errors with other ids in each message, 1,000 per settlement. How long `errors list` ' +
    'takes beside a plain `count(*)` of their table: as the settlements left it, and after a prune, which a worker makes every minute, has added ' +
    `up their counters. Each is done ${LOOKS} times, in turn, after one that is not measured. Checked: 12 groups with all jobs.`,
  peers: ['mulligan-sqlite', 'mulligan-postgres'],
  ownRounds: true,
  notQuick: 'filling takes minutes per store',
  metrics: [
    { key: 'fresh', title: 'errors list, before the prune', unit: 'ms', better: 'lower' },
    { key: 'list', title: 'errors list', unit: 'ms', better: 'lower' },
    { key: 'count', title: 'count(*) of the table', unit: 'ms', better: 'neither' },
    { key: 'ratio', title: 'errors list, to count(*)', unit: 'x', better: 'lower' },
  ],
  async run(stage) {
    const queue = await stage.open();
    if (queue.errors === undefined) throw new Error('it has no error groups');
    const errors = await queue.errors();
    const jobs = stage.size(1_000_000, 20_000);
    stage.say(`burying ${jobs} jobs`);
    await errors.bury(jobs);
    await queue.settleDown(true);
    await errors.list(jobs);
    for (let look = 0; look < LOOKS; look++) stage.set('fresh', await errors.list(jobs));
    await errors.addUp();
    await queue.settleDown(true);
    await errors.list(jobs);
    await errors.count(jobs);
    for (let look = 0; look < LOOKS; look++) {
      const count = await errors.count(jobs);
      const list = await errors.list(jobs);
      stage.set('count', count);
      stage.set('list', list);
      stage.set('ratio', list / count);
    }
  },
};
