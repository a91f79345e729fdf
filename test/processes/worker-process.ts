import { Mulligan } from '../../src/index.ts';
import type { WorkOptions } from '../../src/worker/options.ts';
import { jobs } from './jobs.ts';

/** A real worker process: `node worker-process.ts URL OPTIONS`. It says `ready`, works until SIGTERM, then says `stopped`. */
const [url, options] = process.argv.slice(2) as [string, string];

const mulligan = await Mulligan.open(url, { jobs, log: (entry) => process.send?.({ log: entry }) });
mulligan.on('lease-lost', ({ id, run }) => process.send?.({ leaseLost: { id, run } }));
mulligan.on('completed', ({ id, run }) => process.send?.({ completed: { id, run } }));
mulligan.work(JSON.parse(options) as WorkOptions);
process.once('SIGTERM', () => {
  mulligan.close().then(() => {
    process.send?.('stopped');
    process.disconnect();
  });
});
// Whatever happens to the test, its workers do not outlive it.
process.once('disconnect', () => process.exit());
process.send?.('ready');
