import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Peer } from '../harness/peer.ts';
import type { Results } from '../harness/runner.ts';
import type { Workload } from '../harness/workload.ts';
import { chart } from './chart.ts';
import { figures } from './figures.ts';
import { toRaw } from './ratios.ts';
import { absentThroughout, cell } from './text.ts';

const docs = new URL('../../docs/', import.meta.url);
const charts = new URL('benchmarks/', docs);

/** Writes the generated parts of docs/benchmarks.md and docs/scaling.md, and the charts. */
export function writeDocument(results: Results, workloads: readonly Workload[], peers: readonly Peer[]): void {
  fillIn('benchmarks.md', 'peers', peerTable(peers));
  fillIn('benchmarks.md', 'results', resultParts(results, workloads, peers));
  fillIn('scaling.md', 'figures', table(['', 'What', 'Measured', 'In'], figures(results, workloads)));
}

/** Puts `content` between the marks of that name. */
function fillIn(page: string, name: string, content: string): void {
  const path = new URL(page, docs);
  const text = readFileSync(path, 'utf8');
  const [begin, end] = [`<!-- begin ${name} -->`, `<!-- end ${name} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`docs/${page}: expected ${begin} before ${end}`);
  writeFileSync(path, `${text.slice(0, from + begin.length)}\n\n${content}\n\n${text.slice(to)}`);
}

function peerTable(peers: readonly Peer[]): string {
  const rows = peers.map(({ title, settings, lacks }) => [title, settings, lacks.join('; ') || '-']);
  return table(['Queue', 'Settings', 'What it does not do in the same work'], rows);
}

function resultParts(results: Results, workloads: readonly Workload[], peers: readonly Peer[]): string {
  const parts: string[] = [];
  const absent = absentThroughout(results);
  if (absent.size > 0) {
    const lines = peers.filter(({ id }) => absent.has(id)).map(({ id, title }) => `- ${title}: ${absent.get(id)}`);
    parts.push(`Took no part:\n\n${lines.join('\n')}`);
  }
  for (const workload of workloads) {
    const result = results[workload.id];
    if (result === undefined) continue;
    const { machine, servers } = result;
    parts.push(`### ${workload.id}: ${workload.title}`, workload.what);
    const svg = chart(workload, result, peers);
    if (svg !== null) {
      mkdirSync(charts, { recursive: true });
      const name = `${workload.id.toLowerCase()}.svg`;
      writeFileSync(new URL(name, charts), svg);
      parts.push(`![${workload.title}](benchmarks/${name})`);
    }
    const metrics = workload.metrics.filter(({ key }) =>
      Object.values(result.peers).some(({ figures }) => figures[key] !== undefined),
    );
    const rows = peers.flatMap((peer) => {
      const own = result.peers[peer.id];
      if (own === undefined) return [];
      return [
        [peer.title, ...metrics.map((metric) => cell(own.figures[metric.key], metric, toRaw(result, peer, metric)))],
      ];
    });
    parts.push(table(['', ...metrics.map(({ title }) => title)], rows));
    const remarks = peers.flatMap((peer) => {
      const { notes = [], failures = [] } = result.peers[peer.id] ?? {};
      const reason = result.absent[peer.id];
      return [
        ...notes.map((note) => `- ${peer.title}: ${note}.`),
        ...[...new Set(failures)].map(
          (failure) => `- ${peer.title} failed${extent(failures, result.rounds)}: ${failure}.`,
        ),
        ...(reason === undefined || absent.has(peer.id) ? [] : [`- ${peer.title} took no part: ${reason}.`]),
      ];
    });
    if (remarks.length > 0) parts.push(remarks.join('\n'));
    const around = Object.entries(servers).map(([name, version]) => `${name} ${version}`);
    const limited = peers.some((peer) => metrics.some((metric) => toRaw(result, peer, metric) !== null));
    parts.push(
      `_${result.at.slice(0, 10)}, ${result.rounds === 1 ? 'one round' : `medians of ${result.rounds} rounds (min-max), those without a range of one`}${limited ? ', then the part of the raw limit of the same engine' : ''}. ` +
        `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, ${machine.disk}; ${machine.system}, ` +
        `Node.js ${machine.node}, SQLite ${machine.sqlite}${around.map((one) => `, ${one}`).join('')}._`,
    );
  }
  return parts.length === 0 ? 'No full run is stored yet.' : parts.join('\n\n');
}

/** Its figures are of the other rounds. */
function extent(failures: readonly string[], rounds: number): string {
  return rounds > 1 ? ` in ${failures.length} of ${rounds} rounds` : '';
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
