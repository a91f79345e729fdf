import { systemClock } from '../../clock.ts';
import { AccessError, ConfigError, MulliganError } from '../../errors.ts';
import { gateKey } from '../../gate/index.ts';
import type { Mulligan } from '../../mulligan.ts';
import { type Database, withExisting } from '../database.ts';
import { isNotable } from '../gate-facts.ts';
import { bad, type Check, ok } from './check.ts';
import { MOST_GATES } from './gates.ts';
import { type JobTimes, jobChecks, type StoredWaitingJobs } from './jobs.ts';

/** So many waiting and running jobs are looked at: the API has no verb for the oldest of all. */
const LOOKED_AT = 1_000;

/** Of a database behind a server: what its API shows. The machine of the server can see more. */
export async function examineServer(database: Database, known: ReadonlySet<string> | null): Promise<Check[]> {
  try {
    return await withExisting(database, async (mulligan) => [
      ok('connection', `the server at ${database.url} answers`),
      ...(await jobChecks(mulligan, await jobTimes(mulligan), known)),
    ]);
  } catch (error) {
    if (!(error instanceof MulliganError) || error instanceof ConfigError || error instanceof AccessError) throw error;
    return [bad('connection', error.message, 'see that the server runs and that the address is right')];
  }
}

async function jobTimes(mulligan: Mulligan): Promise<JobTimes> {
  const [due, running, gates] = await Promise.all([
    mulligan.jobs.list({ state: 'ready', limit: LOOKED_AT }),
    mulligan.jobs.list({ state: 'running', limit: LOOKED_AT }),
    mulligan.gates.list({ limit: MOST_GATES }),
  ]);
  const now = systemClock.now();
  const notable = new Set(gates.filter(isNotable).map(({ kind, name }) => gateKey({ kind, name })));
  const waiting = due.map((job): StoredWaitingJobs => {
    const { queue, name, dueAt: oldestDueAt, resource } = job;
    const isHeld = resource !== null && notable.has(gateKey({ kind: 'resource', name: resource }));
    const limits = job.limits.map(({ limit }) => limit);
    return { queue, name, count: 1, due: 1, oldestDueAt, gate: isHeld ? resource : null, limits };
  });
  const ended = running.flatMap(({ leaseEndsAt }) => (leaseEndsAt !== null && leaseEndsAt <= now ? leaseEndsAt : []));
  return {
    now,
    waiting,
    expiredLeases: ended.length,
    oldestLeaseEndedAt: ended.length === 0 ? null : Math.min(...ended),
  };
}
