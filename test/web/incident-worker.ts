import { Mulligan } from '../../src/mulligan.ts';
import { incidentJobs, incidentSchedules } from './incident-jobs.ts';

/* A worker process of the staged incidents: `node incident-worker.ts STORE PROVIDER NAME VERSION QUEUES`. It ends with SIGTERM. */

const [store = '', provider = '', name = '', version = '', queues = ''] = process.argv.slice(2);
const jobs = incidentJobs(version, provider);
const mulligan = await Mulligan.open(store, {
  jobs: Object.values(jobs),
  schedules: incidentSchedules(jobs),
  log: () => {},
});
mulligan.work({ name, version, queues: queues.split(','), concurrency: 8, lease: '5s', poll: '200ms' });
process.once('SIGTERM', () => void mulligan.close({ grace: '1s' }).then(() => process.exit()));
