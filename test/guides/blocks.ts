import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const guides = fileURLToPath(new URL('../../docs/guides/', import.meta.url));

/** Writes the files that a guide shows: the blocks with a file name after their language. */
export function writeGuide(guide: string, folder: string): void {
  const blocks = readFileSync(join(guides, guide), 'utf8').matchAll(/^```\w+ (\S+)\n(.*?)^```$/gms);
  for (const [, file = '', text = ''] of blocks) writeFileSync(join(folder, file), text);
}
