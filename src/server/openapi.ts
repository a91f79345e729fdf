import { z } from 'zod';
import { packageVersion } from '../version.ts';
import type { Answer, Route } from './route.ts';

/** A JSON Schema, as zod writes it. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

export interface OpenApiOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, { schema: JsonSchema }>>;
  };
  readonly responses: Readonly<Record<string, unknown>>;
}

export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: Readonly<Record<string, unknown>>;
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly components: Readonly<Record<string, unknown>>;
}

const PROBLEM = { $ref: '#/components/responses/Problem' };

/** Generated from the schemas that requests are validated by. */
export function openApiDocument(routes: readonly Route[]): OpenApiDocument {
  const paths: Record<string, Record<string, OpenApiOperation>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Mulligan',
      version: packageVersion(),
      description: 'A durable job queue in which retrying is the product. Errors are problem details (RFC 9457).',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      responses: {
        Problem: {
          description: 'Why the request was not served.',
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
      schemas: { Problem: jsonSchema(problem, 'output') },
    },
  };
}

const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  code: z.string().describe('Stable: programs branch on it.'),
  detail: z.string(),
  issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  reference: z.string().optional(),
});

function operationOf(route: Route): OpenApiOperation {
  const { name, tag, summary, description, scopes, body } = route;
  const parameters = [
    ...parametersOf(route.params, 'path'),
    ...parametersOf(route.query, 'query'),
    ...(route.headers ?? []).map(headerParameter),
  ];
  const needed = scopes.length === 0 ? 'No token is needed.' : `Needs the scope ${scopes.join(' or ')}.`;
  return {
    operationId: name,
    tags: [tag],
    summary,
    description: description === undefined ? needed : `${description} ${needed}`,
    security: scopes.map((scope) => ({ token: [scope] })),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: !body.safeParse({}).success,
        content: { 'application/json': { schema: jsonSchema(body, 'input') } },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.answers).map(([status, answer]) => [status, responseOf(status, answer)]),
      ),
      default: PROBLEM,
    },
  };
}

function headerParameter({ name, description }: { name: string; description: string }): Parameter {
  return { name, in: 'header', required: false, description, schema: { type: 'string' } };
}

function parametersOf(schema: z.ZodType | undefined, place: 'path' | 'query'): Parameter[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = jsonSchema(schema, 'input') as {
    properties?: Record<string, JsonSchema>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(typeof description === 'string' && { description }),
    schema: rest,
  }));
}

function responseOf(status: string, { description, type = 'application/json', schema }: Answer): unknown {
  if (Number(status) >= 400) return { ...PROBLEM, description };
  const shown = schema === undefined ? {} : jsonSchema(schema, 'output');
  return { description, content: { [type]: { schema: shown } } };
}

export function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any', target: 'draft-2020-12' });
  return rest;
}
