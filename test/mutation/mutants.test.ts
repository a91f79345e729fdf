import { stripTypeScriptTypes } from 'node:module';
import { describe, expect, it } from 'vitest';
import { instrument } from './instrument.ts';
import { mutantsOf } from './mutants.ts';

const changesOf = (text: string, options?: { sql: boolean }): string[] =>
  mutantsOf(text, options).map(({ change }) => change);

describe('mutants', () => {
  it.each<[string, string[]]>([
    ['const x = a < b;', ['< -> <= in a < b', '< -> >= in a < b']],
    ['const x = a === b;', ['=== -> !== in a === b']],
    ['if (a < b) f();', ['a < b -> true', 'a < b -> false', '< -> <= in a < b']],
    ['const x = a ?? b;', ['a ?? b -> a', 'a ?? b -> b']],
    ['const x = a?.b?.(c);', ['?. -> nothing in a?.b?.(c)', '?. -> . in a?.b?.(c)']],
    ['const x = Math.min(a, 5);', ['min -> max in Math.min(a, 5)', '5 -> 6']],
    ['f();', ['f(); removed']],
    ['const f = () => g();', ['g() -> undefined']],
    ['const x = [a];', ['[a] -> []']],
    ['throw new ConfigError(text(a + 1));', ['throw new ConfigError(text(a + 1)); removed']],
    ['log.warn(text(a + 1));', ['log.warn(text(a + 1)); removed']],
    ['type A = 1 | 2; const x = y as 1;', []],
    ["const x = 'a' + b;", []],
  ])('of %s', (text, changes) => {
    expect(changesOf(text)).toEqual(changes);
  });

  it('of SQL', () => {
    const sql = ['UPDATE jobs SET a = ?1, b = b + 1 WHERE c = ?2 AND d <= 5'].map((text) => `const x = '${text}';`);
    expect(changesOf(sql.join(), { sql: true })).toEqual([
      'SQL = -> <>',
      'SQL <= -> <',
      'SQL 1 -> 2',
      'SQL + -> -',
      'SQL AND d <= 5 -> nothing',
      'SQL a = ?1, -> nothing',
      'SQL , b = b + 1 -> nothing',
    ]);
    expect(changesOf(sql.join())).toEqual([]);
  });
});

describe('an instrumented source', () => {
  const source = `
    export function ask(a: number, list?: { readonly items: number[] }): string {
      let told = '';
      if (a > 1 && a < 5) told += 'few';
      else told += a === 9 ? 'nine' : 'other';
      for (const item of list?.items.filter((one) => one !== 2) ?? []) {
        if (item === 3) continue;
        told += String(item as number);
      }
      return told;
    }`;
  const mutants = mutantsOf(source).map((mutant, id) => ({ ...mutant, id }));
  const calls: [number, { items: number[] }?][] = [[0], [1], [2], [5], [9], [3, { items: [1, 2, 3, 4] }]];

  /** What it answers to all calls, with one mutant switched on. */
  function answers(on: number): string[] {
    const code = stripTypeScriptTypes(instrument(source, mutants, './switch.ts')).replace(/import .*?;|export /g, '');
    const ask = new Function('__mutant', `${code}; return ask;`)((id: number) => id === on);
    return calls.map((call) => {
      try {
        return String(ask(...call));
      } catch (error) {
        return String(error);
      }
    });
  }

  it('does the same as before while nothing is switched on', () => {
    expect(answers(-1)).toEqual(['other', 'other', 'few', 'other', 'nine', 'few14']);
  });

  it.each(mutants.map((mutant) => [mutant.change, mutant.id] as const))('does something else with %s', (_, id) => {
    expect(answers(id)).not.toEqual(answers(-1));
  });
});
