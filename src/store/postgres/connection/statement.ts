import { createHash } from 'node:crypto';

const asText = (value: string): string => value;
const asBoolean = (value: string): boolean => value === 't';
/** By type: bool, int8, int2, int4, numeric. All our numbers fit into one of JavaScript's. */
const parsers: ReadonlyMap<number, (value: string) => unknown> = new Map<number, (value: string) => unknown>([
  [16, asBoolean],
  [20, Number],
  [21, Number],
  [23, Number],
  [1700, Number],
]);
const types = { getTypeParser: (oid: number): ((value: string) => unknown) => parsers.get(oid) ?? asText };

export interface StatementText {
  readonly text: string;
  /** The name under which a session may keep it prepared. It is a digest of the text, so no two texts share a name. */
  readonly name?: string;
}

/** One statement as the driver takes it: rows as arrays, which are quicker to make than objects. */
export interface Statement extends StatementText {
  readonly values: unknown[];
  readonly rowMode: 'array';
  readonly types: typeof types;
}

export function statementOf(text: StatementText, values: unknown[]): Statement {
  return { ...text, values, rowMode: 'array', types };
}

/** For a statement that sessions may keep prepared. */
export function namedText(text: string): StatementText {
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 32);
  return { text, name: `mulligan_${digest}` };
}

/** For a session that is not known to be ours alone. */
export function unnamed({ text, values, rowMode, types }: Statement): Statement {
  return { text, values, rowMode, types };
}
