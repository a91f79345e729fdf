import { expect, it } from 'vitest';
import { fakeOutput } from '../../test/support/terminal.ts';
import { factLines, tableLines } from './table.ts';

const narrow = fakeOutput({ terminal: { columns: 30, rows: 24 } }).output;
const wide = fakeOutput().output;

it('aligns its columns, and leaves no space at the ends of lines', () => {
  const columns = [{ title: 'name' }, { title: 'n', align: 'right' as const }, { title: 'last' }];
  expect(
    tableLines(
      columns,
      [
        ['a', 5, 'x'],
        ['日本', 100, ''],
      ],
      wide,
    ),
  ).toEqual(['name    n  last', 'a       5  x', '日本  100']);
});

it('makes every cell printable', () => {
  expect(tableLines([{ title: 'x' }], [['\u001b[2J'], [{ text: 'a\nb', style: 'red' }]], wide)).toEqual([
    'x',
    '\\x1b[2J',
    'a\\nb',
  ]);
});

it('shortens or wraps the columns that give way when it is too wide', () => {
  const row = ['0123456789', 'some words that are long', 'more words that are longer'];
  const lines = tableLines(
    [{ title: 'id' }, { title: 'a', gives: 'shortened' }, { title: 'b', gives: 'wrapping' }],
    [row],
    narrow,
  );
  expect(lines).toEqual([
    'id          a             b',
    '0123456789  some words …  more words',
    '                          that are',
    '                          longer',
  ]);
  expect(tableLines([{ title: 'a', max: 5 }], [['abcdefgh']], narrow)).toEqual(['a', 'abcd…']);
});

it('leaves columns out, the lowest rank first, when the table is too wide with the others at their narrowest', () => {
  const columns = [
    { title: 'key' },
    { title: 'b', dropRank: 2, gives: 'shortened' as const },
    { title: 'c', dropRank: 1 },
    { title: 'd' },
  ];
  const lines = (key: string): string[] =>
    tableLines(columns, [[key, 'some words that are long', 'cccc', 'd']], narrow);
  expect(lines('0123')).toEqual(['key   b                c     d', '0123  some words tha…  cccc  d']);
  expect(lines('0123456789')[1]).toBe('0123456789  some words tha…  d');
  expect(lines('0123456789012345678901234567')[1]).toBe('0123456789012345678901234567  d');
});

it('cuts nothing for a pipe, unless COLUMNS says how wide it is', () => {
  const long = 'x'.repeat(500);
  expect(tableLines([{ title: 'a', max: 5, gives: 'shortened' }], [[long]], wide)).toEqual(['a', long]);
  process.env.COLUMNS = '20';
  try {
    expect(tableLines([{ title: 'a', gives: 'shortened' }], [[long]], wide)[1]).toHaveLength(20);
  } finally {
    delete process.env.COLUMNS;
  }
});

it('shows facts whole, however long', () => {
  expect(
    factLines(
      [
        ['a', 'x'.repeat(50)],
        ['long', '\u001b'],
      ],
      narrow,
    ),
  ).toEqual([`a     ${'x'.repeat(50)}`, 'long  \\x1b']);
});
