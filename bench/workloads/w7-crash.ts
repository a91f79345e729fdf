import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { chunks, sleep, wall } from '../harness/measure.ts';
import type { OpenPeer } from '../harness/peer.ts';
import { jobs, type Stage, type Workload } from '../harness/workload.ts';

const INNOCENT = 20;

export const w7: Workload = {
  id: 'W7',
  title: 'Crash',
  what:
    'Jobs of 20 ms; midway, with runs under way, the worker process gets a SIGKILL and another one starts. Time from the kill until every ' +
    'job is done, jobs lost, jobs done twice, jobs still held by the dead worker at the end. Then a job that kills ' +
    `each process it runs in, together with ${INNOCENT} harmless ones, and a new process after each death: how many ` +
    'processes it takes down until it is buried, and how many of the harmless ones are done by then.',
  notQuick: 'crashes are noticed after seconds to hours',
  metrics: [
    { key: 'seconds', title: 'all done after', unit: 's', better: 'lower' },
    { key: 'lost', title: 'lost', unit: '', better: 'lower' },
    { key: 'twice', title: 'done twice', unit: '', better: 'lower' },
    { key: 'held', title: 'still held at the end', unit: '', better: 'lower' },
    { key: 'kills', title: 'processes killed by poison', unit: '', better: 'lower' },
    { key: 'buried', title: 'poison buried', unit: '', better: 'higher' },
    { key: 'innocent', title: `harmless ones done, of ${INNOCENT}`, unit: '', better: 'higher' },
  ],
  async run(stage) {
    const queue = await stage.open('main', true);
    await kill(stage, queue);
    await queue.reset(true);
    await poison(stage, queue);
    stage.note(`notices a crash by: ${stage.peer.crashSettings}`);
  },
};

async function kill(stage: Stage, queue: OpenPeer): Promise<void> {
  const count = stage.size(5_000, 1_000);
  const capMs = stage.size(60_000, 20_000);
  const log = logFile(stage);
  for (const part of chunks(jobs(count, 'work'), 1_000)) await queue.enqueueBulk(part);
  await queue.settleDown();
  const assignment = { jobs: count, log, crashSoon: true };
  const first = await stage.crew(1, queue, assignment);
  // Connected before the kill: how long Node.js takes to start is not measured.
  const second = await stage.crew(1, queue, assignment);
  await first.go();
  // In the middle of runs, and not between two batches, where there is nothing to lose.
  const midway = await first.until(
    ({ started, completed }) => completed >= count * 0.4 && started - completed >= 10,
    wall() + capMs,
  );
  if (!midway) stage.note('it was killed late: it had never come to the middle with ten runs under way');
  const killedAt = wall();
  await first.members[0]?.kill();
  await second.go();
  let seen = read(log, count);
  while (seen.ended.some((times) => times === 0) && wall() < killedAt + capMs) {
    await sleep(20);
    seen = read(log, count);
  }
  const tookMs = wall() - killedAt;
  const undone = seen.ended.filter((times) => times === 0).length;
  const { waiting, running, dead } = await queue.counts();
  await second.members[0]?.kill();
  if (undone === 0) stage.set('seconds', tookMs / 1_000);
  else stage.note(`${undone} of ${count} jobs were not done ${capMs / 1_000} s after the kill`);
  stage.set('held', Math.min(undone, waiting + running));
  stage.set('lost', Math.max(0, undone - waiting - running - dead));
  stage.set('twice', seen.ended.filter((times) => times > 1).length);
}

async function poison(stage: Stage, queue: OpenPeer): Promise<void> {
  const capMs = stage.size(120_000, 40_000);
  const log = logFile(stage);
  const harmless = jobs(INNOCENT, 'work');
  await queue.enqueueBulk(harmless.slice(0, INNOCENT / 2));
  await queue.enqueueBulk([{ n: INNOCENT, kind: 'poison', sentAt: 0 }]);
  await queue.enqueueBulk(harmless.slice(INNOCENT / 2));
  const endsAt = wall() + capMs;
  let over = false;
  let kills = 0;
  while (!over && wall() < endsAt) {
    const crew = await stage.crew(1, queue, { jobs: INNOCENT + 1, log, crashSoon: true });
    let alive = true;
    const gone = crew.members[0]?.gone.then(() => {
      alive = false;
    });
    await crew.go().catch(() => {});
    while (alive && !over && wall() < endsAt) {
      await sleep(50);
      const { waiting, running } = await queue.counts();
      over = alive && waiting + running === 0;
    }
    if (!alive) kills++;
    else await crew.members[0]?.kill();
    await gone;
  }
  stage.set('kills', kills);
  stage.set('buried', over ? 1 : 0);
  stage.set('innocent', read(log, INNOCENT + 1).ended.filter((times, n) => n < INNOCENT && times > 0).length);
  if (!over) stage.note(`the poison was not buried within ${capMs / 1_000} s`);
}

function logFile(stage: Stage): string {
  const path = join(stage.folder, `${stage.peer.id}.log`);
  rmSync(path, { force: true });
  return path;
}

/** What handlers wrote down before and after their work; it outlives the process. */
function read(log: string, count: number): { started: number[]; ended: number[] } {
  const started = new Array<number>(count).fill(0);
  const ended = new Array<number>(count).fill(0);
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    const [what, n] = line.split(' ');
    const list = what === 'start' ? started : what === 'end' ? ended : null;
    if (list !== null) list[Number(n)] = (list[Number(n)] ?? 0) + 1;
  }
  return { started, ended };
}
