import { sqlEdits } from './sql.ts';
import { children, dotted, field, list, type Node, parse } from './syntax.ts';

/** One small mistake in a source file. */
export interface Mutant {
  readonly start: number;
  readonly end: number;
  /** `value`: an expression that becomes `after`. `gone`: a statement that is left out. `empty`: a block without its content. */
  readonly kind: 'value' | 'gone' | 'empty';
  readonly before: string;
  readonly after: string;
  /** Where the change itself is, and how it reads: shorter than the whole expression. */
  readonly at: number;
  readonly change: string;
}

/** What is easily mistaken for it. */
const neighbours = new Map([
  ...['< <=', '> >=', '+ -', '* /', '& |'].flatMap((pair): [string, string][] => {
    const [one, other] = pair.split(' ') as [string, string];
    return [
      [one, other],
      [other, one],
    ];
  }),
  ['%', '*'],
  ['**', '*'],
]);
const negated = new Map([
  ['<', '>='],
  ['<=', '>'],
  ['>', '<='],
  ['>=', '<'],
  ['===', '!=='],
  ['!==', '==='],
]);
const assignments = new Map([
  ['+=', '-='],
  ['-=', '+='],
  ['*=', '/='],
  ['??=', '='],
  ['||=', '='],
]);
const methods = new Map([
  ['min', 'max'],
  ['max', 'min'],
  ['floor', 'ceil'],
  ['ceil', 'floor'],
  ['some', 'every'],
  ['every', 'some'],
]);
/** Methods that answer something of the kind they were called on: leaving them out still makes sense. */
const droppable = new Set(['filter', 'sort', 'toSorted', 'slice', 'trim', 'toLowerCase', 'toUpperCase', 'toReversed']);
/** To answer nothing at all is easier to notice than what else can be wrong with these. */
const hasOwnMutants = new Set([
  'Literal',
  'AssignmentExpression',
  'BinaryExpression',
  'LogicalExpression',
  'ConditionalExpression',
  'UnaryExpression',
]);
const SMALL = 16;

/** All mistakes that can be made in a file. Types and the texts of errors and logs have none. */
export function mutantsOf(text: string, { sql = false }: { readonly sql?: boolean } = {}): Mutant[] {
  const found = new Collector(text, sql);
  found.visit(parse(text), null);
  return found.mutants;
}

class Collector {
  readonly mutants: Mutant[] = [];
  readonly #text: string;
  readonly #sql: boolean;
  /** Parts of an optional chain: in brackets of their own they would no longer be skipped with it. */
  readonly #links: Set<Node> = new Set();

  constructor(text: string, sql: boolean) {
    this.#text = text;
    this.#sql = sql;
  }

  visit(node: Node, parent: Node | null): void {
    if (node.type === 'ImportDeclaration' || (parent?.type === 'Property' && parent.key === node && !parent.computed))
      return;
    this.#mutators[node.type]?.(node, parent);
    if (isMessage(node)) return;
    for (const child of children(node)) this.visit(child, node);
  }

  readonly #mutators: Readonly<Record<string, (node: Node, parent: Node | null) => void>> = {
    BinaryExpression: (node, parent) => this.#binary(node, parent),
    LogicalExpression: (node) => this.#logical(node),
    UnaryExpression: (node, parent) => this.#not(node, parent),
    UpdateExpression: (node) =>
      this.#operator(node, node.operator === '++' ? '--' : '++', node.prefix ? node.start : node.end - 2),
    AssignmentExpression: (node) => this.#assignment(node),
    Literal: (node, parent) => this.#literal(node, parent),
    TemplateLiteral: (node) => this.#sqlText(node),
    ArrayExpression: (node) => list(node, 'elements').length > 0 && this.#value(node, '[]'),
    CallExpression: (node) => this.#call(node),
    ChainExpression: (node) => this.#chain(node),
    ConditionalExpression: (node) => this.#condition(field(node, 'test'), ['true', 'false']),
    IfStatement: (node) => this.#condition(field(node, 'test'), ['true', 'false']),
    // Always true would only be an endless loop.
    WhileStatement: (node) => this.#condition(field(node, 'test'), ['false']),
    ForStatement: (node) => this.#condition(field(node, 'test'), ['false']),
    ReturnStatement: (node, parent) => this.#return(node, parent),
    ArrowFunctionExpression: (node) => node.expression === true && this.#dropped(node.body as Node),
    ExpressionStatement: (node, parent) => this.#statement(node, parent, isEffect(node.expression as Node)),
    ThrowStatement: (node, parent) => this.#statement(node, parent, true),
    ContinueStatement: (node, parent) => this.#statement(node, parent, true),
    BreakStatement: (node, parent) => this.#statement(node, parent, parent?.type !== 'SwitchCase'),
    BlockStatement: (node, parent) => this.#block(node, parent),
  };

  #binary(node: Node, parent: Node | null): void {
    const operator = node.operator as string;
    const sides = [node.left as Node, node.right as Node];
    if (operator === '+' && sides.some(isText)) return;
    const others = [neighbours.get(operator), isCondition(node, parent) ? undefined : negated.get(operator)];
    for (const other of others) if (other !== undefined) this.#operator(node, other, this.#operatorAt(node));
  }

  /** Either side alone. That is harder to notice than `||` for `&&`, which differs wherever one of these does. */
  #logical(node: Node): void {
    for (const side of [node.left as Node, node.right as Node]) this.#value(node, this.#of(side));
  }

  #not(node: Node, parent: Node | null): void {
    if (node.operator === '!' && !isCondition(node, parent)) this.#value(node, this.#of(node.argument as Node));
  }

  #assignment(node: Node): void {
    const other = assignments.get(node.operator as string);
    const isAdding = node.operator === '+=' && isText(node.right as Node);
    if (other !== undefined && !isAdding) this.#operator(node, other, this.#operatorAt(node));
  }

  #literal(node: Node, parent: Node | null): void {
    const { value } = node;
    if (typeof value === 'string') this.#sqlText(node);
    // Removed as a whole.
    if (parent?.type === 'AssignmentExpression' && parent.operator === '=') return;
    if (typeof value === 'boolean') this.#value(node, String(!value));
    // Large ones are mostly a matter of taste.
    if (typeof value !== 'number' || value > SMALL) return;
    if (Number.isInteger(value)) this.#value(node, value === 1 ? '0' : String(value + 1));
    else this.#value(node, String(value * 2));
  }

  #sqlText(node: Node): void {
    if (!this.#sql) return;
    const text = this.#of(node);
    for (const { at, before, after } of sqlEdits(text)) {
      const whole = text.slice(0, at) + after + text.slice(at + before.length);
      this.#add(node, 'value', whole, `SQL ${short(before)} -> ${short(after)}`, node.start + at);
    }
  }

  #call(node: Node): void {
    const callee = dotted(field(node, 'callee'));
    if (callee === null || this.#links.has(node)) return;
    const other = methods.get(callee.name);
    const nameAt = (node.callee as Node).end - callee.name.length;
    if (other !== undefined) this.#splice(node, nameAt, callee.name, other);
    if (droppable.has(callee.name))
      this.#add(node, 'value', this.#of(callee.object), `.${callee.name}() dropped`, nameAt);
  }

  #condition(test: Node | null, values: readonly string[]): void {
    if (test === null || (test.type === 'Literal' && typeof test.value === 'boolean')) return;
    for (const value of values) this.#value(test, value);
  }

  #return(node: Node, parent: Node | null): void {
    const value = field(node, 'argument');
    if (value === null) this.#statement(node, parent, true);
    else this.#dropped(value);
  }

  #dropped(value: Node): void {
    const isNothing = value.type === 'Identifier' && value.name === 'undefined';
    if (!isNothing && !hasOwnMutants.has(value.type)) this.#value(value, 'undefined');
  }

  #chain(node: Node): void {
    for (let link = field(node, 'expression'); link; link = field(link, 'callee') ?? field(link, 'object')) {
      if (link.type !== 'MemberExpression' && link.type !== 'CallExpression') break;
      this.#links.add(link);
      if (link.optional !== true) continue;
      const from = (field(link, 'object') ?? field(link, 'callee'))?.end as number;
      const at = this.#text.indexOf('?.', from);
      this.#splice(node, at, '?.', /[[(]/.test(this.#text[at + 2] as string) ? '' : '.');
    }
  }

  /** Not where it is all that an `if` does: that is the `if` never being true. */
  #statement(node: Node, parent: Node | null, counts: boolean): void {
    if (!counts || isWholeIf(node, parent)) return;
    this.#add(node, 'gone', '', `${short(this.#of(node))} removed`, node.start);
  }

  #block(node: Node, parent: Node | null): void {
    const statements = list(node, 'body');
    const [only] = statements;
    if (only === undefined || parent === null || !/^For(Of|In)Statement|CatchClause$/.test(parent.type)) return;
    if (statements.length === 1 && (isRemoved(only) || answersNothing(only))) return;
    this.#add(node, 'empty', '', `block of ${statements.length} statements emptied`, node.start);
  }

  #operatorAt(node: Node): number {
    const gap = this.#text.slice((node.left as Node).end, (node.right as Node).start);
    // Brackets around the left side end in the gap.
    return (node.left as Node).end + gap.indexOf(node.operator as string);
  }

  #operator(node: Node, other: string, at: number): void {
    this.#splice(node, at, node.operator as string, other);
  }

  #splice(node: Node, at: number, before: string, after: string): void {
    const whole = this.#text.slice(node.start, at) + after + this.#text.slice(at + before.length, node.end);
    this.#add(node, 'value', whole, `${before} -> ${after || 'nothing'} in ${short(this.#of(node))}`, at);
  }

  #value(node: Node, after: string): void {
    this.#add(node, 'value', after, `${short(this.#of(node))} -> ${short(after)}`, node.start);
  }

  #add(node: Node, kind: Mutant['kind'], after: string, change: string, at: number): void {
    if (this.#links.has(node)) return;
    const twin = this.mutants.some((one) => one.start === node.start && one.end === node.end && one.after === after);
    if (twin && kind === 'value') return;
    this.mutants.push({ start: node.start, end: node.end, kind, before: this.#of(node), after, change, at });
  }

  #of(node: Node): string {
    return this.#text.slice(node.start, node.end);
  }
}

function isText(node: Node): boolean {
  return node.type === 'TemplateLiteral' || (node.type === 'Literal' && typeof node.value === 'string');
}

/** What stands in an error or a log is for people. */
function isMessage(node: Node): boolean {
  if (node.type === 'ThrowStatement') return true;
  const callee = field(node, 'callee');
  if (callee === null) return false;
  if (node.type === 'NewExpression') return /Error$/.test(String(callee.name));
  const { object, name } = dotted(callee) ?? {};
  const of = object && (dotted(object)?.name ?? object.name ?? (object.property as Node | undefined)?.name);
  return callee.name === 'unexpected' || (/^(debug|info|warn|error)$/.test(String(name)) && /log/i.test(String(of)));
}

function isEffect(expression: Node): boolean {
  const inner = field(expression, 'argument');
  if (expression.type === 'AwaitExpression' || expression.operator === 'void') return inner !== null && isEffect(inner);
  if (expression.type === 'ChainExpression') return true;
  if (expression.type === 'CallExpression') return field(expression, 'callee')?.type !== 'Super';
  return expression.type === 'AssignmentExpression' || expression.type === 'UpdateExpression';
}

/** It is replaced by true and by false, so turning it round adds nothing. */
function isCondition(node: Node, parent: Node | null): boolean {
  return parent?.test === node || (parent?.type === 'LogicalExpression' && parent.operator !== '??');
}

function answersNothing(statement: Node): boolean {
  const value = field(statement, 'argument');
  return statement.type === 'ReturnStatement' && (value === null || value.name === 'undefined');
}

function isRemoved(statement: Node): boolean {
  return statement.type === 'ThrowStatement' || statement.type === 'ExpressionStatement';
}

function isWholeIf(node: Node, parent: Node | null): boolean {
  return parent?.type === 'IfStatement' && parent.alternate === null && parent.consequent === node;
}

function short(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  if (line === '') return 'nothing';
  return line.length > 60 ? `${line.slice(0, 57)}...` : line;
}
