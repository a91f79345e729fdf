import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { expectSoundFile } from './sound-file.ts';

export interface OpenedFile {
  readonly store: SqliteStore;
  readonly path: string;
  readonly clock: VirtualClock;
}

/** A store on a new file and a virtual clock, in the calling thread. When the test is done, the file must be sound. */
export async function withStore(test: (opened: OpenedFile) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
  const path = join(folder, 'jobs.db');
  const clock = new VirtualClock();
  const store = await SqliteStore.open({ path, inline: clock });
  try {
    await test({ store, path, clock });
  } finally {
    await store.close();
    expectSoundFile(path);
    rmSync(folder, { recursive: true });
  }
}
