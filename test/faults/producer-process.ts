import { writeSync } from 'node:fs';
import { Mulligan } from '../../src/index.ts';
import { quick } from '../processes/jobs.ts';

/**
 * `node producer-process.ts URL END`: prints the id of each job as soon as it was acknowledged, without delay. Then it
 * ends by itself (`exit`, `kill`), or goes on until somebody ends it (`never`).
 */
const [url, end] = process.argv.slice(2) as [string, 'exit' | 'kill' | 'never'];

const mulligan = await Mulligan.open(url);
for (let n = 0; ; n++) {
  const { id } = await mulligan.enqueue(quick, { n });
  writeSync(1, `${id}\n`);
  if (end === 'exit') process.exit();
  if (end === 'kill') process.kill(process.pid, 'SIGKILL');
}
