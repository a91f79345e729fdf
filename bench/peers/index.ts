import type { Peer } from '../harness/peer.ts';

/** A process loads the one peer it works with: the memory and the start of others are not its own. */
const load: Readonly<Record<string, () => Promise<Peer>>> = {
  'mulligan-memory': async () => (await import('./mulligan.ts')).mulliganMemory,
  'mulligan-sqlite': async () => (await import('./mulligan.ts')).mulliganSqlite,
  'mulligan-postgres': async () => (await import('./mulligan.ts')).mulliganPostgres,
  'raw-sqlite': async () => (await import('./raw-sqlite.ts')).rawSqlite,
  'raw-postgres-update': async () => (await import('./raw-postgres.ts')).rawPostgresUpdate,
  'raw-postgres-delete': async () => (await import('./raw-postgres.ts')).rawPostgresDelete,
  'pg-boss-default': async () => (await import('./pg-boss.ts')).pgBoss,
  'pg-boss-tuned': async () => (await import('./pg-boss.ts')).pgBossTuned,
  'graphile-worker-default': async () => (await import('./graphile-worker.ts')).graphileWorker,
  'graphile-worker-tuned': async () => (await import('./graphile-worker.ts')).graphileWorkerTuned,
  'bullmq-redis-everysec': async () => (await import('./bullmq.ts')).bullmqRedisEverySecond,
  'bullmq-redis-always': async () => (await import('./bullmq.ts')).bullmqRedisAlways,
  'bullmq-postgres': async () => (await import('./bullmq.ts')).bullmqPostgres,
};

/** Left out of quick runs, which have three minutes: where two variants of a peer exist, the faster stays. */
export const notQuick: ReadonlySet<string> = new Set([
  'mulligan-memory',
  'raw-postgres-delete',
  'pg-boss-default',
  'graphile-worker-default',
  'bullmq-redis-everysec',
]);

export async function peerById(id: string): Promise<Peer> {
  const peer = load[id];
  if (peer === undefined) throw new Error(`there is no peer ${id}; there are ${Object.keys(load).join(', ')}`);
  return await peer();
}

export async function allPeers(): Promise<Peer[]> {
  return await Promise.all(Object.values(load).map((peer) => peer()));
}
