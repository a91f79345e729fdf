import { closest, describe, isList, isPlainObject, unexpected } from '../config.ts';
import type { JsonSchema } from './schema.ts';

/**
 * Checks a value by a JSON Schema and throws a ConfigError that names the field, what was expected and what it got. The
 * schema that is published is the one that is read here, so that both always mean the same.
 */
export function checkBySchema(value: unknown, schema: JsonSchema, what: string): void {
  if (schema.anyOf !== undefined) checkAnyOf(value, schema, schema.anyOf, what);
  else if (schema.const !== undefined) checkChoice(value, [schema.const], what);
  else if (schema.enum !== undefined) checkChoice(value, schema.enum, what);
  else if (schema.type === 'object') checkObject(value, schema, what);
  else if (schema.type === 'array') checkArray(value, schema, what);
  else if (schema.type === 'string') checkString(value, schema, what);
  else checkNumber(value, schema, what);
}

/** Objects are told apart by `kind`; other choices by the type of the value. */
function checkAnyOf(value: unknown, { title }: JsonSchema, choices: readonly JsonSchema[], what: string): void {
  const kinds = choices.flatMap(({ properties }) => properties?.kind?.const ?? []);
  if (kinds.length > 0) {
    if (!isPlainObject(value)) throw unexpected(what, `an object whose kind is ${listed(kinds)}`, value);
    checkChoice(value.kind, kinds, `${what}.kind`);
    const meant = choices.find(({ properties }) => properties?.kind?.const === value.kind) as JsonSchema;
    checkObject(value, meant, what);
    return;
  }
  const ofItsType = choices.find((choice) => typeOf(choice) === typeof value);
  if (ofItsType === undefined) throw unexpected(what, title ?? choices.map(wordsOf).join(', or '), value);
  try {
    checkBySchema(value, ofItsType, what);
  } catch (error) {
    throw title === undefined ? error : unexpected(what, title, value);
  }
}

function typeOf(schema: JsonSchema): string {
  return schema.enum === undefined ? String(schema.type) : 'string';
}

function wordsOf({ enum: choices, properties }: JsonSchema): string {
  return choices === undefined ? `an object with ${Object.keys(properties ?? {}).join(', ')}` : listed(choices);
}

function checkChoice(value: unknown, choices: readonly string[], what: string): void {
  if (typeof value === 'string' && choices.includes(value)) return;
  const meant = typeof value === 'string' ? closest(value, choices) : null;
  throw unexpected(what, listed(choices), value, meant === null ? undefined : `Did you mean ${meant}?`);
}

function checkObject(value: unknown, { properties = {}, required = [] }: JsonSchema, what: string): void {
  const names = Object.keys(properties);
  if (!isPlainObject(value)) throw unexpected(what, `an object with ${names.join(', ')}`, value);
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(properties, name)) continue;
    const meant = closest(name, names);
    const hint = meant === null ? `Valid fields: ${names.join(', ')}.` : `Did you mean ${meant}?`;
    throw unexpected(what, 'known fields only', name, hint);
  }
  const missing = required.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) throw unexpected(what, `the field ${missing}`, value);
  for (const [name, member] of Object.entries(value)) {
    checkBySchema(member, properties[name] as JsonSchema, `${what}.${name}`);
  }
}

function checkArray(value: unknown, { items, minItems = 0, maxItems = Infinity }: JsonSchema, what: string): void {
  if (!isList(value)) throw unexpected(what, 'a list', value);
  if (value.length < minItems || value.length > maxItems) {
    throw unexpected(what, `a list of ${minItems} to ${maxItems}`, value);
  }
  for (const [index, member] of value.entries()) checkBySchema(member, items as JsonSchema, `${what}[${index}]`);
}

function checkString(value: unknown, schema: JsonSchema, what: string): void {
  const { minLength = 0, maxLength = Infinity, pattern } = schema;
  // JSON Schema counts characters, and not UTF-16 units.
  const length = typeof value === 'string' ? [...value].length : -1;
  const fits =
    length >= minLength &&
    length <= maxLength &&
    (pattern === undefined || new RegExp(pattern, 'u').test(value as string));
  if (!fits) {
    const bounds = maxLength === Infinity ? '' : ` of ${minLength} to ${maxLength} characters`;
    throw unexpected(what, `a text${bounds}`, value);
  }
}

function checkNumber(value: unknown, schema: JsonSchema, what: string): void {
  const { minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity, type } = schema;
  const isNumber =
    typeof value === 'number' && Number.isFinite(value) && (type !== 'integer' || Number.isInteger(value));
  if (isNumber && value >= minimum && value <= maximum && value > exclusiveMinimum) return;
  const kind = type === 'integer' ? 'a whole number' : 'a number';
  const bounds = [
    ...(exclusiveMinimum === -Infinity ? [] : [`above ${exclusiveMinimum}`]),
    ...(minimum === -Infinity ? [] : [`from ${minimum}`]),
    ...(maximum === Infinity ? [] : [`up to ${maximum}`]),
  ];
  throw unexpected(what, [kind, ...bounds].join(' '), value);
}

function listed(choices: readonly string[]): string {
  return choices.length === 1 ? describe(choices[0]) : `one of ${choices.join(', ')}`;
}
