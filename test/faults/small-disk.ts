import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A disk of a few MB that can be filled to its last byte: a tmpfs of its own, which only root may mount. */
export class SmallDisk implements Disposable {
  readonly folder: string;

  constructor(megabytes: number) {
    this.folder = mkdtempSync(join(tmpdir(), 'mulligan-disk-'));
    try {
      mount('-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', this.folder);
    } catch (error) {
      rmdirSync(this.folder);
      throw error;
    }
  }

  /** Leaves no room for anything but `megabytes`. */
  fill(megabytes = 0): void {
    const room = megabytes === 0 ? null : this.#write('room', megabytes);
    this.#write('ballast', Number.POSITIVE_INFINITY);
    if (room !== null) rmSync(room);
  }

  makeRoom(): void {
    rmSync(join(this.folder, 'ballast'));
  }

  /** Only while nobody has a file on it open for writing. */
  remount(mode: 'ro' | 'rw'): void {
    mount('-o', `remount,${mode}`, this.folder);
  }

  [Symbol.dispose](): void {
    // Lazily: a process that is just being killed may still hold a file.
    execFileSync('umount', ['--lazy', this.folder], { stdio: 'pipe' });
    rmdirSync(this.folder);
  }

  /** So much, or as much as there is room for: the last write may fall short, and only the next one fails. */
  #write(name: string, megabytes: number): string {
    const path = join(this.folder, name);
    const file = openSync(path, 'w');
    const megabyte = Buffer.alloc(1024 * 1024);
    try {
      for (let written = 0; written < megabytes; written++) writeSync(file, megabyte);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(file);
    }
    return path;
  }
}

function mount(...args: string[]): void {
  execFileSync('mount', args, { stdio: 'pipe' });
}

/** Why there can be no such disk here; null when there can. */
export function noSmallDisk(): string | null {
  try {
    using _disk = new SmallDisk(1);
    return null;
  } catch (error) {
    return `a disk of its own cannot be mounted here (it takes root on Linux): ${(error as Error).message.trim()}`;
  }
}
