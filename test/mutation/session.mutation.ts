import { readFileSync } from 'node:fs';
import { describe } from 'vitest';
import type { Session } from './protocol.ts';

/* The one file that Vitest is told to run: it brings in the tests of a session, one suite for each of their files. */
const { files } = JSON.parse(readFileSync(process.env.MUTATION_SESSION as string, 'utf8')) as Session;
for (const file of files) {
  describe(file, async () => {
    await import(/* @vite-ignore */ `../../${file}`);
  });
}
