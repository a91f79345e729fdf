import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printable, printableJson, shorten, widthOf, wrap } from './printable.ts';

describe('printable', () => {
  it.each([
    ['\u001b[2J', '\\x1b[2J'],
    ['a\r\nb\tc', 'a\\r\\nb\\tc'],
    ['\u0000\u0007\u007f', '\\x00\\x07\\x7f'],
    ['\u009b31m', '\\x9b31m'],
    ['\u202egnp.exe', '\\u202egnp.exe'],
    ['\u2066x\u2069', '\\u2066x\\u2069'],
    ['a\u200bb\ufeff', 'a\\u200bb\\ufeff'],
    ['\u2028\u2029', '\\u2028\\u2029'],
    ['\ud800', '\\ud800'],
    ['\u{e0041}', '\\u{e0041}'],
    ['Zoë 日本 👍 {"a":1} \\', 'Zoë 日本 👍 {"a":1} \\'],
  ])('shows %j as %j', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  it('never lets a control character through, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(printable(text)).not.toMatch(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u);
      }),
    );
  });
});

describe('printableJson', () => {
  it('parses to the same value, and holds no control character', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const text = printableJson(value);
        expect(text).not.toMatch(/[\p{Cc}\p{Cs}]/u);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
    expect(printableJson({ a: '\u009b\u202e\u{e0041}' })).toBe('{"a":"\\u009b\\u202e\\udb40\\udc41"}');
    expect(printableJson(undefined)).toBe('null');
  });
});

describe('widths', () => {
  it('counts the columns of a terminal', () => {
    expect(['abc', '日本', '👍', 'e\u0301', ''].map(widthOf)).toEqual([3, 4, 2, 1, 0]);
  });

  it('shortens to a width, with an ellipsis where it cut', () => {
    expect(shorten('abcdef', 6)).toBe('abcdef');
    expect(shorten('abcdef', 4)).toBe('abc…');
    expect(shorten('日本語', 4)).toBe('日…');
  });

  it('wraps at spaces, and inside words that are too long', () => {
    expect(wrap('one two three', 7)).toEqual(['one two', 'three']);
    expect(wrap('abcdefgh ij', 4)).toEqual(['abcd', 'efgh', 'ij']);
    expect(wrap('', 4)).toEqual(['']);
  });

  it('wraps without losing or adding anything but spaces', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 2, max: 20 }), (text, width) => {
        const lines = wrap(text, width);
        for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
        expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
      }),
    );
  });
});
