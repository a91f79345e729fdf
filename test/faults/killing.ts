import { setTimeout as sleep } from 'node:timers/promises';
import type { Fleet, WorkerProcess } from '../processes/fleet.ts';
import type { Chance } from './chance.ts';

export const work = { concurrency: 20, lease: '1s' } as const;

/** Four places, of which one is emptied and filled again every few hundred ms; every third is hit while it starts. */
export async function keepKilling(fleet: Fleet, luck: Chance, stormMs: number): Promise<WorkerProcess[]> {
  const crew = Array.from({ length: 4 }, () => fleet.launch(work));
  const everyone = [...crew];
  const stopAt = performance.now() + stormMs;
  while (performance.now() < stopAt) {
    const place = luck.index(crew.length);
    const victim = crew[place] as WorkerProcess;
    if (luck.index(3) > 0) await victim.ready;
    await sleep(luck.between(50, 400));
    await victim.kill();
    crew[place] = fleet.launch(work);
    everyone.push(crew[place]);
  }
  await Promise.all(crew.map((worker) => worker.kill()));
  return everyone;
}

/** What the storm has left is ended by one that is spared, which is returned. */
export async function drain(fleet: Fleet): Promise<WorkerProcess> {
  const fresh = await fleet.start(work);
  await fleet.allEnded();
  await fresh.stop();
  return fresh;
}
