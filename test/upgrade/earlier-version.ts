import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A commit of this repository whose tables a running version may still meet: see docs/upgrading.md. */
export const EARLIER = '6691a1965f42fd339e9c9a30e0b84b1a7851e84f';

const root = new URL('../../', import.meta.url).pathname;

/** The sources of an earlier version in a folder of their own; null where this is no clone with that history. */
export class EarlierVersion implements Disposable {
  readonly root: string;

  static checkOut(revision: string): EarlierVersion | null {
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-earlier-'));
    try {
      const archive = execFileSync('git', ['archive', '--format=tar', revision, 'src', 'package.json'], {
        cwd: root,
        maxBuffer: 2 ** 28,
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      execFileSync('tar', ['-x', '-C', folder], { input: archive });
    } catch {
      rmSync(folder, { recursive: true });
      return null;
    }
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    return new EarlierVersion(folder);
  }

  private constructor(folder: string) {
    this.root = folder;
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true });
  }
}

export const thisVersion: string = root;
