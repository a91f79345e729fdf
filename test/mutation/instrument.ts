import type { Mutant } from './mutants.ts';

export interface Numbered extends Mutant {
  readonly id: number;
}

interface Insertion {
  readonly at: number;
  readonly text: string;
  /** Smaller goes first where several meet. */
  readonly rank: number;
}

/**
 * A source with all of its mutants in it, each behind a switch: `(mutant(7) ? a <= b : a < b)`. At most one is on, so
 * what is mutated holds no switches itself, and the text grows only with the number of mutants.
 */
export function instrument(text: string, mutants: readonly Numbered[], switchPath: string): string {
  const insertions: Insertion[] = [];
  for (const [{ start, end, kind }, same] of byPlace(mutants)) {
    const [open, close] = wrap(kind, same);
    const inside = kind === 'empty' ? 1 : 0;
    const size = end - start - 2 * inside;
    const order = kind === 'gone' ? 0.5 : 0;
    // What ends here ends before anything else begins; the larger begins first and ends last.
    insertions.push({ at: start + inside, text: open, rank: 1e9 - size - order });
    insertions.push({ at: end - inside, text: close, rank: size + order - 1e9 });
  }
  insertions.sort((a, b) => a.at - b.at || a.rank - b.rank);
  let result = `import { mutant as __mutant } from ${JSON.stringify(switchPath)};`;
  let done = 0;
  for (const { at, text: inserted } of insertions) {
    result += text.slice(done, at) + inserted;
    done = at;
  }
  return result + text.slice(done);
}

function wrap(kind: Mutant['kind'], mutants: readonly Numbered[]): readonly [string, string] {
  const [{ id }] = mutants as [Numbered];
  switch (kind) {
    case 'value':
      return [`(${mutants.map((one) => `__mutant(${one.id}) ? (${one.after}) : `).join('')}(`, '))'];
    case 'gone':
      return [`{ if (!__mutant(${id})) {`, '} }'];
    case 'empty':
      return [`if (!__mutant(${id})) {`, '}'];
  }
}

function byPlace(mutants: readonly Numbered[]): Map<Numbered, Numbered[]> {
  const firsts = new Map<string, Numbered>();
  const places = new Map<Numbered, Numbered[]>();
  for (const mutant of mutants) {
    const place = `${mutant.start} ${mutant.end} ${mutant.kind}`;
    const first = firsts.get(place) ?? mutant;
    firsts.set(place, first);
    places.set(first, [...(places.get(first) ?? []), mutant]);
  }
  return places;
}
