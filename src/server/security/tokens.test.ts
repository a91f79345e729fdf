import { timingSafeEqual } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { createToken, readTokens, Tokens } from './tokens.ts';

vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>();
  return { ...crypto, timingSafeEqual: vi.fn(crypto.timingSafeEqual) };
});

it('every token is compared in constant time, whichever one matches', () => {
  const made = Array.from({ length: 5 }, (_, index) => createToken(`t${index}`, ['read']));
  const tokens = new Tokens(made.map(({ stored }) => stored));
  for (const [token, name] of [...made.map((one) => [one.token, one.stored.name]), ['mulligan_wrong', undefined]]) {
    vi.mocked(timingSafeEqual).mockClear();
    expect(tokens.find(token as string)?.name).toBe(name);
    expect(timingSafeEqual).toHaveBeenCalledTimes(5);
  }
});

it('a text that is longer than any token is not even digested', () => {
  const { stored } = createToken('a', ['read']);
  vi.mocked(timingSafeEqual).mockClear();
  expect(new Tokens([stored]).find('x'.repeat(100_000))).toBeNull();
  expect(timingSafeEqual).not.toHaveBeenCalled();
});

it('a token where its digest should be is refused, and not shown', () => {
  const { token, stored } = createToken('a', ['read']);
  expect(() => readTokens([{ ...stored, sha256: token }], 'tokens')).toThrow(/expected the SHA-256/);
  expect(() => readTokens([{ ...stored, sha256: token }], 'tokens')).not.toThrow(token);
});
