import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { cases, type Entry } from './cases.ts';

it('every run of the tests tries ten thousand bad inputs or more', () => {
  const total = Object.values(cases).reduce((sum, count) => sum + count, 0);
  expect(total).toBeGreaterThanOrEqual(10_000);
});

it('every entry that is counted is also tried', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.ts'));
  const held = files.flatMap((name) => {
    const code = readFileSync(new URL(name, import.meta.url), 'utf8');
    return [...code.matchAll(/hold\(\s*'([^']+)'/g)].map(([, entry]) => entry as Entry);
  });
  expect(held.sort()).toEqual(Object.keys(cases).sort());
});
