import type { Peer } from '../harness/peer.ts';
import type { WorkloadResult } from '../harness/runner.ts';
import type { Workload } from '../harness/workload.ts';
import { bars } from './bars.ts';
import { curves } from './curves.ts';
import { frame, type Panel } from './svg.ts';

const HEAD = 30;

/** The figures of a workload as SVG: its curves, or bars for each metric; null when there are none. */
export function chart(workload: Workload, result: WorkloadResult, peers: readonly Peer[]): string | null {
  const judged = workload.metrics.filter(({ better }) => better !== 'neither');
  const draw: ((top: number) => Panel | null)[] = workload.curve
    ? [(top) => curves(workload, result, peers, top)]
    : judged.map((metric) => (top) => bars(metric, result, peers, top));
  const panels: string[] = [];
  let y = HEAD;
  for (const panel of draw) {
    const drawn = panel(y);
    if (drawn === null) continue;
    panels.push(drawn.svg);
    y = drawn.bottom + HEAD;
  }
  return panels.length === 0 ? null : frame(`${workload.id} ${workload.title}`, y, panels.join('\n'));
}
