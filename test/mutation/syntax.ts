import { parseAst } from 'vitest/node';

/** A node of the syntax tree, as far as it matters here. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

export function parse(text: string): Node {
  return parseAst(text, { lang: 'ts' }) as unknown as Node;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}

/** `x as T`, `x!` and `x satisfies T` are their `x`; every other TS node is types, and gone at run time. */
const seeThrough = new Set(['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression']);

export function children(node: Node): Node[] {
  if (seeThrough.has(node.type)) return [node.expression as Node];
  return Object.entries(node)
    .filter(([field]) => field !== 'parent')
    .flatMap(([, value]) => value)
    .filter(isNode)
    .filter(({ type }) => !type.startsWith('TS') || seeThrough.has(type));
}

export function field(node: Node, name: string): Node | null {
  const value = node[name];
  return isNode(value) ? value : null;
}

export function list(node: Node, name: string): Node[] {
  return (node[name] as unknown[]).filter(isNode);
}

/** `Math.min` and the like, else null. */
export function dotted(node: Node | null): { object: Node; name: string } | null {
  if (node?.type !== 'MemberExpression' || node.computed === true || node.optional === true) return null;
  const property = node.property as Node;
  return property.type === 'Identifier' ? { object: node.object as Node, name: property.name as string } : null;
}
