/** A change inside a text: what stood there, and what stands there now. */
export interface Edit {
  readonly at: number;
  readonly before: string;
  readonly after: string;
}

const looksLikeSql = /\b(SELECT|UPDATE|DELETE FROM|INSERT INTO|AND|WHERE)\b/;

const comparisons: Readonly<Record<string, string>> = {
  '<=': '<',
  '<': '<=',
  '>=': '>',
  '>': '>=',
  '=': '<>',
  '<>': '=',
};

/** Mistakes in the SQL of a string or template, `${...}` included. Schemas are left alone: files depend on them. */
export function sqlEdits(source: string): Edit[] {
  const text = hideExpressions(source);
  if (!looksLikeSql.test(text) || text.includes('CREATE TABLE')) return [];
  const edits = [...swappedComparisons(text), ...otherConstants(text), ...lostConjuncts(text), ...lostClauses(text)];
  return edits.map(({ at, before, after }) => ({ at, before: source.slice(at, at + before.length), after }));
}

/** `${...}` as a word of the same length: what is inside has mutants of its own. */
function hideExpressions(source: string): string {
  let text = '';
  let open = 0;
  for (let at = 0; at < source.length; at++) {
    const char = source[at] as string;
    const opens = char === '{' && (open > 0 || source[at - 1] === '$');
    if (opens) open++;
    text += open > 0 || (char === '$' && source[at + 1] === '{') ? 'x' : char;
    if (char === '}' && open > 0) open--;
  }
  return text;
}

/** Only in conditions: in a SET, `=` is no comparison. */
function swappedComparisons(text: string): Edit[] {
  const condition = /\b(?:WHERE|AND|OR|WHEN)\s+\(?[\w.?]+\s(<=|>=|<>|<|>|=)\s/dg;
  return [...text.matchAll(condition)].map((match) => {
    const [at] = (match.indices as RegExpIndicesArray)[1] as [number, number];
    const before = match[1] as string;
    return { at, before, after: comparisons[before] as string };
  });
}

function otherConstants(text: string): Edit[] {
  const number = /(?<=[\s(])\d+(?=[\s,)]|$)/g;
  const sign = /(?<=\w )[+-](?= [\w?])/g;
  const bound = /\b(max|min)(?=\()/g;
  return [
    ...matches(text, number, (before) => String(Number(before) + 1)),
    ...matches(text, sign, (before) => (before === '+' ? '-' : '+')),
    ...matches(text, bound, (before) => (before === 'max' ? 'min' : 'max')),
    ...matches(text, /\bNOT IN\b/g, () => 'IN'),
    ...matches(text, / DESC\b/g, () => ''),
  ];
}

function lostConjuncts(text: string): Edit[] {
  const edits: Edit[] = [];
  for (const { index } of text.matchAll(/\bAND\b/g)) {
    const end = clauseEnd(text, index + 3, /\n|\b(AND|ORDER|GROUP|LIMIT|RETURNING|ON CONFLICT)\b|[`']$/g);
    edits.push({ at: index, before: text.slice(index, end), after: '' });
  }
  return edits;
}

/** One assignment of a SET, the ON CONFLICT of an INSERT, the order of a SELECT. */
function lostClauses(text: string): Edit[] {
  const edits = matches(text, /\bORDER BY [\w., ]+?(?= LIMIT|\s*[`'\n)])/g, () => '');
  const set = /\bSET\b/.exec(text);
  if (!set) return edits;
  const end = clauseEnd(text, set.index, /\bWHERE\b|[`']$/g);
  const items = atTopLevel(text, set.index + 3, end);
  if (items.length < 2) return edits;
  for (const [index, { from, to }] of items.entries()) {
    // With the comma after it; the last one with the comma before it.
    const last = index === items.length - 1;
    const [at, until] = last ? [from - 1, to] : [from, to + 1];
    const space = last ? '' : ' ';
    edits.push({ at, before: text.slice(at, until), after: space });
  }
  return edits;
}

function matches(text: string, pattern: RegExp, change: (before: string) => string): Edit[] {
  return [...text.matchAll(pattern)].map(({ 0: before, index: at }) => ({ at, before, after: change(before) }));
}

/** Where a clause ends: at what follows it on the same level of brackets. */
function clauseEnd(text: string, from: number, next: RegExp): number {
  for (const { index } of text.slice(from).matchAll(next)) {
    if (depth(text.slice(from, from + index)) === 0) return from + index;
  }
  return closing(text, from) ?? text.length - 1;
}

function depth(text: string): number {
  return text.split('(').length - text.split(')').length;
}

function closing(text: string, from: number): number | null {
  for (let at = from; at < text.length; at++) if (depth(text.slice(from, at + 1)) < 0) return at;
  return null;
}

function atTopLevel(text: string, from: number, end: number): { from: number; to: number }[] {
  const items: { from: number; to: number }[] = [];
  let start = from;
  for (let at = from; at < end; at++) {
    if (text[at] !== ',' || depth(text.slice(from, at)) !== 0) continue;
    items.push({ from: start, to: at });
    start = at + 1;
  }
  return [...items, { from: start, to: end }];
}
