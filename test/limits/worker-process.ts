import { Mulligan } from '../../src/index.ts';
import type { WorkOptions } from '../../src/worker/options.ts';
import { limitJobs } from './jobs.ts';

/** A real worker process: `node worker-process.ts URL OPTIONS`. It says `ready` and works until it is killed. */
const [url, options] = process.argv.slice(2) as [string, string];
const mulligan = await Mulligan.open(url, { jobs: limitJobs, log: () => {} });
mulligan.work(JSON.parse(options) as WorkOptions);
// Whatever happens to the test, its workers do not outlive it.
process.once('disconnect', () => process.exit());
process.send?.('ready');
