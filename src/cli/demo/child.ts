import { once } from 'node:events';
import { Mulligan } from '../../mulligan.ts';
import { demoJobs, RISKY_QUEUE } from './jobs.ts';

/*
 * The demo's second worker process. It is forked with the address of the database, runs until the parent sends stop or
 * ends, and is killed by one of the jobs it runs.
 */

// Ctrl-C reaches the whole process group; the parent decides when this process ends.
process.on('SIGINT', () => {});
process.on('disconnect', () => process.exit(0));
const toldToStop = once(process, 'message');

const mulligan = await Mulligan.open(process.argv[2] as string, {
  jobs: demoJobs,
  // The parent owns the screen.
  log: ({ level, message }) => (level === 'debug' ? undefined : process.send?.(`${level}: ${message}`)),
});
// The shortest lease there is: a crash is noticed when the lease of the dead worker ends.
mulligan.work({ queues: [RISKY_QUEUE], concurrency: 4, lease: '1s', poll: '100ms', name: `demo-${process.pid}` });

await toldToStop;
await mulligan.close({ grace: '1s' });
process.exit(0);
