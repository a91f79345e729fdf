import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { type Job, Mulligan } from '../../src/index.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { EARLIER, EarlierVersion, thisVersion } from './earlier-version.ts';
import type { Answer, Order } from './member.ts';

const PER_ORDER = 40;

/** A process of one version. */
class Member {
  readonly #child: ChildProcess;
  readonly #answers: Answer[] = [];

  static async start(root: string, url: string, name: string): Promise<Member> {
    const member = new Member(root, url, name);
    await member.#heard((answer) => answer.ready === true);
    return member;
  }

  private constructor(root: string, url: string, name: string) {
    this.#child = fork(new URL('./member.ts', import.meta.url), [root, url, name], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#child.on('message', (answer) => this.#answers.push(answer as Answer));
  }

  async enqueue(): Promise<readonly string[]> {
    const before = this.#answers.length;
    this.#order({ enqueue: PER_ORDER });
    const { ids } = await this.#heard((answer, index) => index >= before && answer.ids !== undefined);
    return ids as string[];
  }

  /** SIGKILL, when it has just started a job that takes a while. */
  async killAtWork(): Promise<void> {
    const before = this.#answers.length;
    await this.#heard((answer, index) => index >= before && answer.started === 'slow');
    await this.kill();
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }

  async stop(): Promise<void> {
    const exit = once(this.#child, 'exit');
    this.#order({ stop: true });
    await exit;
  }

  #order(order: Order): void {
    this.#child.send(order);
  }

  async #heard(fits: (answer: Answer, index: number) => boolean): Promise<Answer> {
    for (;;) {
      const found = this.#answers.find(fits);
      if (found) return found;
      const next = await Promise.race([once(this.#child, 'message'), once(this.#child, 'exit').then(() => null)]);
      if (next === null) throw new Error('a member of the fleet ended too early');
    }
  }
}

interface Queue extends AsyncDisposable {
  readonly url: string;
}

async function sqliteQueue(): Promise<Queue> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
  return {
    url: `sqlite:${join(folder, 'jobs.db')}`,
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }),
  };
}

const earlier = EarlierVersion.checkOut(EARLIER);
afterAll(() => earlier?.[Symbol.dispose]());

/** Old processes first, then both side by side, then new ones only; on the way one of each is killed at work. */
async function rollingDeploy(url: string, old: string, members: Member[]): Promise<readonly string[]> {
  const start = async (root: string, name: string): Promise<Member> => {
    const member = await Member.start(root, url, name);
    members.push(member);
    return member;
  };
  const ids: string[] = [];
  const firstOld = await start(old, 'old-1');
  ids.push(...(await firstOld.enqueue()));
  const firstNew = await start(thisVersion, 'new-1');
  ids.push(...(await firstNew.enqueue()));
  const secondOld = await start(old, 'old-2');
  ids.push(...(await secondOld.enqueue()));
  await firstOld.killAtWork();
  ids.push(...(await firstNew.enqueue()));
  await firstNew.killAtWork();
  await start(thisVersion, 'new-2');
  await secondOld.stop();
  return ids;
}

async function allEnded(mulligan: Mulligan): Promise<void> {
  for (;;) {
    const { states } = await mulligan.stats();
    if (states.ready + states.running + states.scheduled + states.retrying === 0) return;
    await sleep(50);
  }
}

// Without git or without the history of this repository there is no earlier version to run.
describe.skipIf(earlier === null)('a rolling deploy from an earlier version', () => {
  const queues = { sqlite: sqliteQueue, postgres: () => TestDatabase.create(inject('postgresUrl')) };
  for (const [kind, open] of Object.entries(queues)) {
    it(`loses no job on ${kind}, though processes of both versions are killed on the way`, async () => {
      await using queue: Queue = await open();
      const members: Member[] = [];
      try {
        const ids = await rollingDeploy(queue.url, (earlier as EarlierVersion).root, members);
        expect(ids.length).toBe(4 * 3 * PER_ORDER);
        await using mulligan = await Mulligan.open(queue.url);
        await allEnded(mulligan);
        const jobs = await Promise.all(ids.map((id) => mulligan.jobs.get(id)));
        expect(new Set(jobs.map((job) => job?.state))).toEqual(new Set(['completed']));
        const runs = (await Promise.all(ids.map((id) => mulligan.jobs.runs(id)))).flat();
        const workers = new Set(runs.map(({ worker }) => worker.slice(0, 'old-1'.length)));
        expect([...workers].sort()).toEqual(['new-1', 'new-2', 'old-1', 'old-2']);
        expect(runs.some(({ outcome, worker }) => outcome === 'crashed' && worker.startsWith('old-1'))).toBe(true);
        expect(runs.some(({ outcome, worker }) => outcome === 'crashed' && worker.startsWith('new-1'))).toBe(true);
        for (const job of jobs as Job[]) expect(job.runs).toBe(runs.filter(({ jobId }) => jobId === job.id).length);
      } finally {
        await Promise.all(members.map((member) => member.kill()));
      }
    });
  }
});
