import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Fleet } from '../processes/fleet.ts';
import { expectSoundFile } from '../support/sound-file.ts';
import { chance } from './chance.ts';
import { checkLedgers } from './ledger-check.ts';

const script = fileURLToPath(new URL('./producer-process.ts', import.meta.url));

/** A folder for a queue that only producers have open: when the last of them dies, nobody holds the file. */
class Producers implements AsyncDisposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'mulligan-'));
  readonly acknowledged: string[] = [];
  readonly #children: Set<ChildProcess> = new Set();

  /** Resolves with how it ended, when all it has printed was read. */
  async run(end: 'exit' | 'kill' | 'never', onLine: (child: ChildProcess) => void = () => {}): Promise<unknown[]> {
    const url = `sqlite:${join(this.folder, 'jobs.db')}`;
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script, url, end], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#children.add(child);
    createInterface(child.stdout).on('line', (id) => {
      this.acknowledged.push(id);
      onLine(child);
    });
    const ended = await once(child, 'close');
    this.#children.delete(child);
    return ended;
  }

  /** Every job is there, runs and ends. */
  async expectAllKept(): Promise<void> {
    await using fleet = await Fleet.open(this.folder);
    await fleet.start({ concurrency: 10 });
    await fleet.allEnded();
    const { jobs } = await checkLedgers(fleet.mulligan, { acknowledged: this.acknowledged });
    expect(jobs.filter(({ state }) => state !== 'completed')).toEqual([]);
    expectSoundFile(fleet.path);
  }

  kill(): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
    await Promise.all([...this.#children].map((child) => once(child, 'close')));
    rmSync(this.folder, { recursive: true });
  }
}

describe('a process that enqueues', () => {
  it('may end right after the acknowledgement: the job is there', async () => {
    await using producers = new Producers();
    expect(await producers.run('exit')).toEqual([0, null]);
    expect(producers.acknowledged).toHaveLength(1);
    await producers.expectAllKept();
  });

  it('may be killed right after the acknowledgement: the job is there', async () => {
    await using producers = new Producers();
    for (let n = 0; n < 3; n++) expect(await producers.run('kill')).toEqual([null, 'SIGKILL']);
    expect(producers.acknowledged).toHaveLength(3);
    await producers.expectAllKept();
  });

  it('may be killed at any moment beside others: all that was acknowledged is there', async () => {
    const luck = chance();
    await using producers = new Producers();
    const killAfter = (lines: number) => {
      let left = lines;
      return (child: ChildProcess): void => {
        if (--left === 0) child.kill('SIGKILL');
      };
    };
    await Promise.all(Array.from({ length: 4 }, () => producers.run('never', killAfter(1 + luck.index(200)))));
    await producers.expectAllKept();
  });

  it('may be killed while it makes the file: the next one makes it whole', async () => {
    const luck = chance();
    const killAndGoOn = async (): Promise<void> => {
      await using producers = new Producers();
      const folder = watch(producers.folder);
      const begun = once(folder, 'change');
      const killed = producers.run('never');
      await begun;
      folder.close();
      await sleep(luck.between(0, 15));
      producers.kill();
      await killed;
      expect(await producers.run('exit')).toEqual([0, null]);
      await producers.expectAllKept();
    };
    await Promise.all(Array.from({ length: 4 }, killAndGoOn));
  });
});
