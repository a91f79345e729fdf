import type { Peer } from '../harness/peer.ts';
import { type Figure, type Results, show } from '../harness/runner.ts';
import type { Metric, Workload } from '../harness/workload.ts';
import { toRaw } from './ratios.ts';

/** Each workload as a table for the terminal. */
export function asText(results: Results, workloads: readonly Workload[], peers: readonly Peer[]): string {
  const lines: string[] = [];
  const absent = absentThroughout(results);
  for (const workload of workloads) {
    const result = results[workload.id];
    if (result === undefined) continue;
    const rounds = `${result.rounds} ${result.rounds === 1 ? 'round' : 'rounds'}`;
    lines.push('', `${workload.id} ${workload.title} · medians of ${rounds} (min-max) · part of the raw limit`);
    const metrics = workload.metrics.filter(({ key }) =>
      Object.values(result.peers).some(({ figures }) => figures[key] !== undefined),
    );
    const rows = [['', ...metrics.map(({ title }) => title)]];
    for (const peer of peers) {
      const own = result.peers[peer.id];
      if (own === undefined) continue;
      rows.push([
        peer.title,
        ...metrics.map((metric) => cell(own.figures[metric.key], metric, toRaw(result, peer, metric))),
      ]);
    }
    const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
    for (const row of rows)
      lines.push(
        row
          .map((text, column) => text.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd(),
      );
    for (const peer of peers) {
      const { notes = [], failures = [] } = result.peers[peer.id] ?? {};
      for (const note of notes) lines.push(`  ${peer.title}: ${note}`);
      for (const failure of new Set(failures)) lines.push(`  ${peer.title} FAILED: ${failure}`);
      const reason = result.absent[peer.id];
      if (reason !== undefined && !absent.has(peer.id)) lines.push(`  ${peer.title} took no part: ${reason}`);
    }
  }
  if (absent.size > 0) lines.push('', 'Took no part at all');
  for (const { id, title } of peers) if (absent.has(id)) lines.push(`  ${title}: ${absent.get(id)}`);
  return lines.join('\n');
}

/** Peers that are absent from every workload, each with its reason, so that it need not be said each time. */
export function absentThroughout(results: Results): ReadonlyMap<string, string> {
  const all = Object.values(results);
  return new Map(
    Object.entries(all[0]?.absent ?? {}).filter(([id]) => all.every(({ absent }) => absent[id] !== undefined)),
  );
}

export function cell(figure: Figure | undefined, { unit }: Metric, raw: number | null): string {
  if (figure === undefined) return '-';
  const spread = figure.values.length > 1 ? ` (${show(figure.min, '')}-${show(figure.max, '')})` : '';
  const part = raw === null ? '' : ` ${raw.toFixed(2)}`;
  return `${show(figure.median, unit)}${spread}${part}`;
}
