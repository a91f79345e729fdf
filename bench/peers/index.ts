import type { Peer } from '../harness/peer.ts';
import { graphileWorker, graphileWorkerTuned } from './graphile-worker.ts';
import { mulliganMemory, mulliganPostgres, mulliganSqlite } from './mulligan.ts';
import { pgBoss, pgBossTuned } from './pg-boss.ts';
import { rawPostgresDelete, rawPostgresUpdate } from './raw-postgres.ts';
import { rawSqlite } from './raw-sqlite.ts';

export const peers: readonly Peer[] = [
  mulliganMemory,
  mulliganSqlite,
  mulliganPostgres,
  rawSqlite,
  rawPostgresUpdate,
  rawPostgresDelete,
  pgBoss,
  pgBossTuned,
  graphileWorker,
  graphileWorkerTuned,
];

export function peerById(id: string): Peer {
  const peer = peers.find((one) => one.id === id);
  if (peer === undefined) throw new Error(`there is no peer ${id}; there are ${peers.map((one) => one.id).join(', ')}`);
  return peer;
}
