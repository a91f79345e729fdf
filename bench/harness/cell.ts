import { peerById } from '../peers/index.ts';
import { workloadById } from '../workloads/index.ts';
import type { Servers } from './peer.ts';
import { Stage, type Values } from './workload.ts';

/*
 * One workload on one peer, once, in a process of its own: no peer inherits the heap, the compiled code or the
 * connections of another.
 */
export interface CellTask {
  readonly peer: string;
  readonly workload: string;
  readonly servers: Servers;
  readonly quick: boolean;
  readonly rounds: number;
}

export type FromCell =
  | { readonly type: 'progress'; readonly text: string }
  | { readonly type: 'done'; readonly values: Values; readonly notes: readonly string[] }
  | { readonly type: 'failed'; readonly reason: string };

process.on('disconnect', () => process.exit());
process.once('message', (task: CellTask) => {
  perform(task).then(say, (error: unknown) =>
    say({ type: 'failed', reason: error instanceof Error ? error.message : String(error) }),
  );
});

async function perform({ peer, workload, servers, quick, rounds }: CellTask): Promise<FromCell> {
  const stage = new Stage(await peerById(peer), servers, { quick, rounds }, (text) => say({ type: 'progress', text }));
  await workloadById(workload).run(stage);
  await stage.close();
  return { type: 'done', values: stage.values, notes: stage.notes };
}

function say(message: FromCell): void {
  process.send?.(message);
}
