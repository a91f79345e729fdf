import type { Peer } from '../harness/peer.ts';
import type { Results, WorkloadResult } from '../harness/runner.ts';
import type { Metric, Workload } from '../harness/workload.ts';

/** The raw limit of each engine. A ratio to it says more than a rate: it holds from machine to machine. */
const limits: Readonly<Record<string, string>> = {
  sqlite: 'raw-sqlite',
  postgres: 'raw-postgres-update',
};

/** These peers, and the raw limits that their ratios are to. */
export function withLimits(peers: readonly Peer[], everyone: readonly Peer[]): Peer[] {
  const wanted = new Set(peers.flatMap(({ id, engine }) => [id, limits[engine]]));
  return everyone.filter(({ id }) => wanted.has(id));
}

/** The part of its engine's raw limit that a peer reaches; null where there is none to compare with. */
export function toRaw(result: WorkloadResult, peer: Peer, metric: Metric): number | null {
  const limit = limits[peer.engine];
  if (metric.unit !== '/s' || limit === undefined || peer.id === limit) return null;
  const own = result.peers[peer.id]?.figures[metric.key];
  const raw = result.peers[limit]?.figures[metric.key];
  return own === undefined || raw === undefined ? null : own.median / raw.median;
}

/** What `--check` compares: Mulligan to the raw limit, and its growth to itself. */
export function ratios(
  results: Results,
  workloads: readonly Workload[],
  peers: readonly Peer[],
): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const workload of workloads) {
    const result = results[workload.id];
    if (result === undefined) continue;
    for (const peer of peers.filter(({ id }) => id.startsWith('mulligan-'))) {
      for (const metric of workload.metrics) {
        const figure = result.peers[peer.id]?.figures[metric.key];
        const isGrowth = metric.unit === 'x' && metric.better === 'higher';
        const ratio = isGrowth ? (figure?.median ?? null) : toRaw(result, peer, metric);
        if (ratio !== null) found.set(`${workload.id} ${peer.id} ${metric.key}`, ratio);
      }
    }
  }
  return found;
}

export interface Verdict {
  readonly name: string;
  readonly expected: number;
  readonly now: number | undefined;
  readonly bad: boolean;
}

/** Worse by more than `tolerance` is bad; better never is. */
export function compare(
  expected: ReadonlyMap<string, number>,
  current: ReadonlyMap<string, number>,
  tolerance: number,
): Verdict[] {
  return [...expected].map(([name, before]) => {
    const now = current.get(name);
    return { name, expected: before, now, bad: now === undefined || now < before * (1 - tolerance) };
  });
}
