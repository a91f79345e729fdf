import { readFileSync } from 'node:fs';

let version: string | null = null;

/** The version of this package; `unknown` where a bundler has left its manifest behind. */
export function packageVersion(): string {
  version ??= readVersion();
  return version;
}

function readVersion(): string {
  try {
    const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    return manifest.version;
  } catch {
    return 'unknown';
  }
}
