import { parseAst } from 'vitest/node';

/** A test, or a group of them, as its source declares it. */
export interface NamedTest {
  /** As it is written, with the placeholders of `it.each` and the expressions of a template. */
  readonly name: string;
  /** Whether it runs: `sometimes` when a condition (`skipIf`, `context.skip()`) decides. */
  readonly runs: 'always' | 'sometimes' | 'never';
}

interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

type Runs = NamedTest['runs'];

const declares = new Set(['it', 'test', 'describe']);
const effects: Readonly<Record<string, Runs>> = {
  skip: 'never',
  todo: 'never',
  fails: 'never',
  skipIf: 'sometimes',
  runIf: 'sometimes',
};

/**
 * All tests and groups of a test file, and the cases of a conformance file. Read from the syntax tree and not from a
 * run, so that a test that does not run is seen as well. A file in which one test is marked `only` runs no other.
 */
export function testNamesIn(source: string): NamedTest[] {
  const found: (NamedTest & { readonly only: boolean })[] = [];
  visit(parseAst(source, { lang: 'ts' }) as unknown as Node, 'always', false);
  const hasOnly = found.some(({ only }) => only);
  return found.map(({ name, runs, only }) => ({ name, runs: hasOnly && !only ? 'never' : runs }));

  function visit(node: Node, outer: Runs, onlyOutside: boolean): void {
    const declared = declaration(node, source);
    for (const name of caseNames(node, source)) found.push({ name, runs: outer, only: onlyOutside });
    if (declared === null) {
      for (const child of children(node)) visit(child, outer, onlyOutside);
      return;
    }
    const runs = least(outer, declared.runs);
    const only = onlyOutside || declared.only;
    found.push({ name: declared.name, runs, only });
    for (const child of children(node)) visit(child, runs, only);
  }
}

/** `it('name', ...)` with whatever stands between the two: `it.concurrent.each(...)`, `describe.skipIf(...)`. */
function declaration(node: Node, source: string): (NamedTest & { readonly only: boolean }) | null {
  if (node.type !== 'CallExpression') return null;
  const [title, ...rest] = node.arguments as Node[];
  const name = title === undefined ? null : textOf(title, source);
  const words = chain(node.callee as Node);
  if (name === null || !declares.has(words[0] ?? '')) return null;
  const marks = [...words.slice(1), ...rest.flatMap((node) => options(node, source))].map(
    (word): Runs => effects[word] ?? 'always',
  );
  const body: Runs = words[0] !== 'describe' && rest.some(skipsItself) ? 'sometimes' : 'always';
  return { name, runs: [...marks, body].reduce<Runs>(least, 'always'), only: words.includes('only') };
}

/** `it.skipIf(a).each(b)` -> it, skipIf, each. */
function chain(node: Node): string[] {
  if (node.type === 'Identifier') return [node.name as string];
  if (node.type === 'CallExpression') return chain(node.callee as Node);
  if (node.type === 'TaggedTemplateExpression') return chain(node.tag as Node);
  if (node.type !== 'MemberExpression') return [];
  const { name } = node.property as Node;
  return [...chain(node.object as Node), String(name)];
}

/** `{ skip: true }` as the second argument. */
function options(node: Node, source: string): string[] {
  if (node.type !== 'ObjectExpression') return [];
  return (node.properties as Node[]).map((property) => keyOf(property, source)).filter((name) => name !== null);
}

/** The test's own `context.skip()`. */
function skipsItself(node: Node): boolean {
  if (node.type === 'CallExpression' && chain(node.callee as Node).at(-1) === 'skip') return true;
  return children(node).some(skipsItself);
}

/** `cases('verb', { 'name': ... })`: how a conformance file names its cases. */
function caseNames(node: Node, source: string): string[] {
  if (node.type !== 'CallExpression' || chain(node.callee as Node).join('.') !== 'cases') return [];
  return (node.arguments as Node[]).flatMap((argument) => options(argument, source));
}

function keyOf(property: Node, source: string): string | null {
  if (property.type !== 'Property' || property.computed === true) return null;
  const key = property.key as Node;
  return key.type === 'Identifier' ? (key.name as string) : textOf(key, source);
}

function textOf(node: Node, source: string): string | null {
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value;
  return node.type === 'TemplateLiteral' ? source.slice((node.start as number) + 1, (node.end as number) - 1) : null;
}

function least(one: Runs, other: Runs): Runs {
  if (one === 'never' || other === 'never') return 'never';
  return one === 'sometimes' || other === 'sometimes' ? 'sometimes' : 'always';
}

function children(node: Node): Node[] {
  return Object.entries(node)
    .filter(([field]) => field !== 'parent')
    .flatMap(([, value]) => value)
    .filter((value): value is Node => typeof (value as Node | null)?.type === 'string');
}
