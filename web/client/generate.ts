import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { JsonSchema, OpenApiDocument, OpenApiOperation } from '../../src/server/openapi.ts';
import { openApiDocument } from '../../src/server/openapi.ts';
import { routes } from '../../src/server/routes/index.ts';

/*
 * Writes operations.ts from the OpenAPI document: what each call of the API takes and answers. `node web/client/generate.ts`
 * after a change of the routes; a test compares.
 */

/** What the dashboard has no use for. */
const leftOut = ['store', 'work', 'health', 'documents'];
const target = fileURLToPath(new URL('operations.ts', import.meta.url));

interface Named {
  readonly method: string;
  readonly path: string;
  readonly operation: OpenApiOperation;
}

export function generate(document: OpenApiDocument): string {
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Named => ({ method: method.toUpperCase(), path, operation })),
  );
  const used = all.filter(({ operation }) => !operation.tags.some((tag) => leftOut.includes(tag)));
  return `/* Written by web/client/generate.ts from the OpenAPI document. */

export interface Operations {
${used.map(interfaceOf).join('\n')}
}

/** Method and path of each. */
export const operations: Readonly<Record<keyof Operations, readonly [method: string, path: string]>> = {
${used.map(({ method, path, operation }) => `  ${operation.operationId}: ['${method}', '${path}'],`).join('\n')}
};
`;
}

function interfaceOf({ operation }: Named): string {
  const { operationId, summary } = operation;
  return `  /** ${summary}. */
  ${operationId}: {
    params: ${parametersOf(operation, 'path')};
    query: ${parametersOf(operation, 'query')};
    body: ${bodyOf(operation)};
    answer: ${answerOf(operation)};
  };`;
}

function parametersOf({ parameters = [] }: OpenApiOperation, where: 'path' | 'query'): string {
  const own = parameters.filter((one) => one.in === where);
  const fields = own.map(({ name, required, schema }) => `${name}${required ? '' : '?'}: ${typeOf(schema)}`);
  return fields.length === 0 ? 'undefined' : `{ ${fields.join('; ')} }`;
}

function bodyOf({ requestBody }: OpenApiOperation): string {
  const schema = requestBody?.content['application/json']?.schema;
  return schema === undefined ? 'undefined' : typeOf(schema);
}

/** Of all answers that are no problem. */
function answerOf({ responses }: OpenApiOperation): string {
  const schemas = Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, answer]) => (answer as { content?: Record<string, { schema?: JsonSchema }> }).content)
    .map((content) => content?.['application/json']?.schema);
  const types = new Set(schemas.map((schema) => (schema === undefined ? 'unknown' : typeOf(schema))));
  return [...types].join(' | ') || 'unknown';
}

/** A JSON Schema, as zod writes it, as a type. */
function typeOf(schema: JsonSchema | boolean): string {
  // What nothing fits, or anything.
  if (typeof schema === 'boolean') return schema ? 'unknown' : 'never';
  const { anyOf, oneOf, type } = schema;
  if ('const' in schema) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const members = (anyOf ?? oneOf) as readonly JsonSchema[] | undefined;
  if (members !== undefined) return [...new Set(members.map(typeOf))].join(' | ');
  if (Array.isArray(type)) return type.map((one: string) => typeOf({ ...schema, type: one })).join(' | ');
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
      return type;
    case 'number':
    case 'integer':
      return 'number';
    case 'array':
      return `readonly (${schema.items === undefined ? 'unknown' : typeOf(schema.items as JsonSchema)})[]`;
    case 'object':
      return objectOf(schema);
    default:
      return 'unknown';
  }
}

function objectOf(schema: JsonSchema): string {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  const required = (schema.required ?? []) as readonly string[];
  if (properties.length === 0) return schema.additionalProperties === false ? 'Record<string, never>' : 'object';
  const fields = properties.map(([name, one]) => `${name}${required.includes(name) ? '' : '?'}: ${typeOf(one)}`);
  return `{ ${fields.join('; ')} }`;
}

if (import.meta.main) {
  const text = generate(openApiDocument(routes));
  if (text !== readFileSync(target, { encoding: 'utf8', flag: 'a+' })) writeFileSync(target, text);
}
