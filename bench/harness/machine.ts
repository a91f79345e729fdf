import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem, type } from 'node:os';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly system: string;
  readonly node: string;
  readonly sqlite: string;
  /** The file system that the data lies on. */
  readonly disk: string;
}

export function machine(folder: string): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.version,
    sqlite: process.versions.sqlite ?? 'none',
    disk: fileSystem(folder),
  };
}

function fileSystem(folder: string): string {
  try {
    return execFileSync('df', ['--output=fstype', folder], { encoding: 'utf8' }).trim().split('\n').at(-1) ?? 'unknown';
  } catch {
    return 'unknown';
  }
}
