import { hash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sha256InScript } from './sha256.ts';

it('SHA-256 in script gives the digests of Node.js, at every length around a block', () => {
  for (let length = 0; length < 200; length++) {
    const data = Uint8Array.from({ length }, (_, at) => (at * 7 + length) & 255);
    expect(sha256InScript(data)).toBe(hash('sha256', data, 'hex'));
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), (data) => {
      expect(sha256InScript(data)).toBe(hash('sha256', data, 'hex'));
    }),
  );
});
