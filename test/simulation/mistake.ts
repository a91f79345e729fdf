import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A deliberate mistake in the sources: a text that occurs exactly once, and what stands there instead. */
export interface Mistake {
  readonly name: string;
  /** Below src/. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const root = new URL('../../', import.meta.url).pathname;

/** Makes the mistake in a copy of these parts of the tree, and removes the copy afterwards. */
export async function withMistake<Result>(
  { file, find, replace }: Mistake,
  parts: readonly string[],
  use: (folder: string) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-mutant-'));
  try {
    for (const part of parts) cpSync(join(root, part), join(folder, part), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const path = join(folder, 'src', file);
    const text = readFileSync(path, 'utf8');
    const found = text.split(find).length - 1;
    if (found !== 1) throw new Error(`expected ${JSON.stringify(find)} once in src/${file}, got it ${found} times.`);
    writeFileSync(
      path,
      text.replace(find, () => replace),
    );
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
