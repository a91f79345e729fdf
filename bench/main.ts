import { pick, runAll } from './harness/runner.ts';
import { allPeers } from './peers/index.ts';
import { workloads } from './workloads/index.ts';

export interface Arguments {
  readonly workload?: string[] | undefined;
  readonly peer?: string[] | undefined;
  readonly rounds?: string | undefined;
  readonly quick: boolean;
  readonly json: boolean;
  readonly check: boolean;
  readonly help: boolean;
}

export async function main(given: Arguments): Promise<number> {
  const split = (list: readonly string[] | undefined): string[] | undefined => list?.flatMap((item) => item.split(','));
  const rounds = Number(given.rounds ?? (given.quick ? 1 : 5));
  const results = await runAll({
    workloads: pick(workloads, split(given.workload)).filter(
      ({ notQuick }) => !given.quick || given.workload || !notQuick,
    ),
    peers: pick(await allPeers(), split(given.peer)),
    rounds,
    quick: given.quick,
    named: given.peer !== undefined,
    chosen: given.workload !== undefined,
    say: (text) => process.stderr.write(`${text}\n`),
  });
  console.log(JSON.stringify(results, null, 2));
  return 0;
}
