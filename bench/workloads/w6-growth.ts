import { drain } from '../harness/drain.ts';
import { rotate } from '../harness/measure.ts';
import type { Workload } from '../harness/workload.ts';

export const w6: Workload = {
  id: 'W6',
  title: 'Growth',
  what:
    'A drain of 5,000 jobs in an empty queue, in front of 1,000,000 waiting jobs of a lower priority, and among 5,000,000 ' +
    'finished ones (500, 10,000 and 20,000 in a quick run). ' +
    'The clock stops when the last handler has ended. The rounds alternate between the three; ratios are to the ' +
    'empty queue of the same peer. Checked: each job ran exactly once.',
  ownRounds: true,
  metrics: [
    { key: 'empty', title: 'empty', unit: '/s', better: 'higher' },
    { key: 'waiting', title: 'before waiting jobs', unit: '/s', better: 'higher' },
    { key: 'waitingRatio', title: 'before waiting, to empty', unit: 'x', better: 'higher' },
    { key: 'finished', title: 'among finished jobs', unit: '/s', better: 'higher' },
    { key: 'finishedRatio', title: 'among finished, to empty', unit: 'x', better: 'higher' },
  ],
  async run(stage) {
    const waiting = stage.size(1_000_000, 10_000);
    const finished = stage.size(5_000_000, 20_000);
    const sizes = { count: stage.size(5_000, 500), capMs: stage.size(60_000, 1_500) };
    const empty = await stage.open('empty');
    const behind = await stage.open('waiting');
    stage.say(`filling in ${waiting} waiting jobs`);
    await behind.fillWaiting(waiting);
    await behind.settleDown(true);
    const among = await stage.open('finished');
    stage.say(`filling in ${finished} finished jobs`);
    const reason = await among.fillFinished(finished);
    await among.settleDown(true);
    if (reason !== null) stage.note(`not among finished jobs: ${reason}`);
    const parts = [
      { key: 'empty', queue: empty },
      { key: 'waiting', queue: behind },
      ...(reason === null ? [{ key: 'finished', queue: among }] : []),
    ];
    for (let round = 0; round < stage.rounds; round++) {
      const rates: Record<string, number> = {};
      let capped = false;
      // Each comes first once, so that none always finds the disk busy or the caches warm.
      for (const { key, queue } of rotate(parts, round)) {
        const drained = await drain(stage, queue, { ...sizes, part: key, othersWait: true });
        rates[key] = drained.perSecond;
        capped ||= drained.capped;
        stage.set(key, drained.perSecond);
      }
      for (const key of ['waiting', 'finished']) {
        const rate = rates[key];
        if (rate !== undefined) stage.set(`${key}Ratio`, rate / (rates.empty as number));
      }
      // What is left over would run in the next round.
      if (capped) break;
    }
  },
};
