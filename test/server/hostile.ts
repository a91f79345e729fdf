import type { JsonSchema, OpenApiDocument, OpenApiOperation } from '../../src/server/openapi.ts';

/*
 * Hostile requests, made from the OpenAPI document: each is right in most of its parts, so that it gets far, and wrong in
 * some. The same seed makes the same requests.
 */

export interface HostileRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
  /** A stream without end: read a little of it, and hang up. */
  readonly isStream: boolean;
}

export type Random = () => number;

export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

const hostileValues: readonly unknown[] = [
  null,
  true,
  '',
  ' ',
  '\0',
  '\u0001',
  '\ud800',
  'a\u202eb',
  "'; DROP TABLE jobs; --",
  '../../../etc/passwd',
  '%00%2e%2e',
  '{{7*7}}<%= 7*7 %>',
  '<script>alert(1)</script>',
  '__proto__',
  'constructor',
  'x'.repeat(5_000),
  '\n\r\n\r\nHTTP/1.1 200 OK',
  0,
  -1,
  1.5,
  1e308,
  -1e308,
  2 ** 53,
  4_294_967_296,
  [],
  {},
  [[[[[]]]]],
  { toString: null, valueOf: 1 },
  { $map: [['a', 1]] },
  { $set: [1] },
  { $number: 'NaN' },
  { $bigint: '5' },
  { $object: [['__proto__', { polluted: true }]] },
  { $list: [1], stoppedAfter: 5 },
  JSON.parse('{"__proto__":{"polluted":true}}'),
];

const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** JSON inside of JSON: what a check of the body itself does not see. */
const hostileTexts: readonly string[] = [
  'not json',
  '',
  'null',
  '-0',
  '1e999',
  '"\\ud800"',
  '"\\u0000"',
  '{"__proto__":{"polluted":true}}',
  '{"$number":"NaN"}',
  '{"a":1,"a":2}',
  '[1,\n2]',
  '!no JSON at all',
  nested(64),
  nested(500),
  nested(501),
];

/** The same by bytes: deep, long, or of many values. They are rare, or the jobs that they make would fill every list. */
const largeTexts: readonly (() => string)[] = [
  () => nested(5_000),
  () => nested(20_000),
  () => JSON.stringify('x'.repeat(200_000)),
  () => JSON.stringify('\u{1f600}'.repeat(60_000)),
  () => JSON.stringify('"'.repeat(130_000)),
  () => JSON.stringify('x'.repeat(2_000_000)),
  () => `[${'{},'.repeat(80_000)}{}]`,
  () => `[${'[],'.repeat(400_000)}[]]`,
  () => `{${Array.from({ length: 10_000 }, (_, at) => `"k${at}":${at}`).join(',')}}`,
];

/** Bodies that cost much more to read than to send. */
const largeBodies: readonly (() => string)[] = [
  () => `[${'{},'.repeat(300_000)}{}]`,
  () => `[${'{},'.repeat(1_200_000)}{}]`,
  () => `[[${'{"$number":"1"},'.repeat(200_000)}1]]`,
  () => `[{"$map":[${'["a",1],'.repeat(100_000)}["a",1]]}]`,
  () => `[[${'"00000000-0000-7000-8000-000000000000",'.repeat(50_000)}"a"]]`,
  () => `[{"$set":[${'1,'.repeat(300_000)}1]}]`,
  () => `{"name":"a","jobs":[${'{"input":[{},{},{}]},'.repeat(20_000)}{}]}`,
  () => `{${Array.from({ length: 100_000 }, (_, at) => `"$k${at}":1`).join(',')}}`,
  () => JSON.stringify('x'.repeat(4_000_000)),
];
/** Longer texts than this hold JSON. */
const LONGEST_TEXT = 2 ** 20;
const RARE = 0.01;

const words = ['a', 'default', 'w1', 'smtp', 'email.send', '5s', '1h', '2026-01-01T00:00:00Z', 'read', '0 3 * * *'];

export class HostileRequests {
  readonly #random: Random;
  readonly #operations: readonly { method: string; path: string; operation: OpenApiOperation }[];
  readonly #authorization: string;
  /** How much of the request that is being made is hostile. */
  #hostility = 0;
  /** Ids and leases that the server has answered: a request with one of these gets further. */
  readonly #seen: string[] = [];

  constructor(document: OpenApiDocument, random: Random, authorization: string) {
    this.#random = random;
    this.#authorization = authorization;
    this.#operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
    );
  }

  saw(text: string): void {
    for (const [, id] of text.matchAll(/"(?:id|lease)":"([^"]{1,4000})"/g)) this.#seen.push(id as string);
    this.#seen.splice(0, Math.max(0, this.#seen.length - 200));
  }

  next(): HostileRequest {
    this.#hostility = this.#pick([0, 0.01, 0.1]);
    const { method, path, operation } = this.#pick(this.#operations);
    const isStream = JSON.stringify(operation.responses).includes('text/event-stream');
    const schema = operation.requestBody?.content['application/json']?.schema;
    return {
      method: this.#chance(0.02) ? this.#pick(['PATCH', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']) : method,
      path: this.#chance(0.03) ? this.#hostilePath() : this.#path(path, operation),
      headers: this.#headers(schema !== undefined),
      body: schema === undefined ? null : this.#body(schema),
      isStream,
    };
  }

  #path(path: string, { parameters = [] }: OpenApiOperation): string {
    const filled = path.replace(/\{\w+\}/g, () => encodeURIComponent(this.#text()));
    const query = parameters
      .filter((one) => one.in === 'query' && this.#chance(0.4))
      .map(({ name, schema }) => `${name}=${encodeURIComponent(this.#queryText(schema))}`);
    if (this.#chance(0.05)) query.push(`${encodeURIComponent(this.#text())}=1`);
    return query.length === 0 ? filled : `${filled}?${query.join('&')}`;
  }

  #queryText(schema: JsonSchema): string {
    const value = this.#value(schema, 0);
    return (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).slice(0, 1_000).toWellFormed();
  }

  #hostilePath(): string {
    return this.#pick([
      '/',
      '//evil.example/api/v1/jobs',
      '/api/v1/jobs/%',
      '/api/v1/jobs/%00',
      '/api/v1/jobs/..%2f..%2fetc%2fpasswd',
      '/api/v1/jobs?token=x',
      '/api/v1/store/constructor',
      '/api/v1/store/__proto__',
      '/api/v1/store/close',
      `/${'x'.repeat(9_000)}`,
      '/api/v1/jobs?limit=1&limit=2',
      '/docs/../../etc/passwd',
    ]);
  }

  #headers(hasBody: boolean): Record<string, string> {
    const headers: Record<string, string> = { authorization: this.#authorization };
    if (hasBody)
      headers['content-type'] = this.#chance(0.97) ? 'application/json' : this.#pick(['text/plain', 'a/b', '']);
    if (this.#chance(0.02))
      headers.authorization = this.#pick(['', 'Bearer', 'Basic eDp5', `Bearer ${'x'.repeat(2_000)}`]);
    if (this.#chance(0.02)) headers.host = this.#pick(['evil.example', '[::1]:99999', 'localhost@evil.example']);
    if (this.#chance(0.02)) headers.origin = this.#pick(['null', 'https://evil.example', '\\', 'file://']);
    if (this.#chance(0.05)) headers['idempotency-key'] = this.#pick(['k', ' ', 'x'.repeat(3_000)]);
    if (this.#chance(0.05)) headers['last-event-id'] = this.#pick(['0', '-1', 'a-b-c', 'x'.repeat(3_000)]);
    if (this.#chance(0.01)) headers['content-encoding'] = 'gzip';
    return headers;
  }

  #body(schema: JsonSchema): Buffer {
    if (this.#chance(this.#hostility * RARE * 10)) return Buffer.from(this.#pick(largeBodies)());
    const text = JSON.stringify(this.#value(schema, 0)) ?? '';
    if (this.#chance(0.9)) return Buffer.from(text);
    return this.#pick([
      Buffer.from(text.slice(0, Math.floor(text.length / 2))),
      Buffer.from(''),
      Buffer.from('\ufeff{}'),
      Buffer.from([0xff, 0xfe, 0x00, 0xd8]),
      Buffer.from('['.repeat(5_000)),
      Buffer.from('{"a":'.repeat(2_000)),
      Buffer.from(`"${'\\u0000'.repeat(1_000)}"`),
      Buffer.from('NaN'),
      Buffer.from('1e999'),
    ]);
  }

  /** What the schema asks for, and sometimes not. */
  #value(schema: JsonSchema, depth: number): unknown {
    if (this.#chance(depth === 0 ? this.#hostility / 3 : this.#hostility) || depth > 8)
      return this.#pick(hostileValues);
    const either = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined;
    if (either !== undefined) return this.#value(this.#pick(either), depth + 1);
    if (schema.const !== undefined) return schema.const;
    if (Array.isArray(schema.enum)) return this.#pick(schema.enum);
    switch (schema.type) {
      case 'object':
        return this.#object(schema, depth);
      case 'array':
        return this.#array(schema, depth);
      case 'string':
        if (((schema.maxLength as number | undefined) ?? 0) > LONGEST_TEXT) return this.#jsonText();
        return this.#chance(0.9) ? this.#fitting(schema) : this.#text();
      case 'boolean':
        return this.#chance(0.5);
      case 'integer':
      case 'number':
        return this.#number(schema);
      default:
        return this.#pick([...words, 1, null, { password: 'hunter2' }, ...hostileValues]);
    }
  }

  /** A text of the form that the schema asks for. */
  #fitting({ pattern, format }: JsonSchema): string {
    if (format === 'date-time') return '2026-01-01T00:00:00Z';
    if (typeof pattern !== 'string') return this.#text();
    if (pattern.includes('ms|s')) return this.#pick(['0s', '5ms', '1h', '99999999d']);
    if (pattern.includes('\\/')) return this.#pick(['50/s', '1/m', '0/s']);
    const hex = (length: number): string => Array.from({ length }, () => this.#pick([...'0123456789abcdef'])).join('');
    return pattern.includes('0-9a-f') ? `${hex(8)}-${hex(4)}-7${hex(3)}-8${hex(3)}-${hex(12)}` : this.#text();
  }

  #jsonText(): string {
    if (this.#chance(RARE)) return this.#pick(largeTexts)();
    if (this.#chance(this.#hostility)) return this.#pick(hostileTexts);
    return JSON.stringify(this.#pick([...words, 1, null, [1, 2], { password: 'hunter2', to: 'ada' }]));
  }

  #object({ properties = {}, required = [] }: JsonSchema, depth: number): unknown {
    const needed = required as readonly string[];
    const entries = Object.entries(properties as Record<string, JsonSchema>)
      .filter(([name]) => (needed.includes(name) ? !this.#chance(0.02) : this.#chance(0.4)))
      .map(([name, own]): [string, unknown] => [name, this.#value(own, depth + 1)]);
    if (this.#chance(0.03)) entries.push([this.#text(), 1]);
    return Object.fromEntries(entries);
  }

  #array({ items, prefixItems }: JsonSchema, depth: number): unknown {
    if (Array.isArray(prefixItems)) return prefixItems.map((own: JsonSchema) => this.#value(own, depth + 1));
    const length = Math.floor(this.#random() * 4);
    return Array.from({ length }, () => this.#value((items as JsonSchema | undefined) ?? {}, depth + 1));
  }

  #number({ minimum = 0 }: JsonSchema): number {
    const least = typeof minimum === 'number' ? minimum : 0;
    return this.#pick([least, least + 1, 5, 100, 1_000, 10_000, -1, 0.5, ...this.#largeNumbers()]);
  }

  #largeNumbers(): readonly number[] {
    return this.#hostility === 0 ? [] : [2 ** 31 - 1, 2 ** 31, 2 ** 32, 1e15, 2 ** 53, 1e300];
  }

  #text(): string {
    const hostile = hostileValues.filter((value) => typeof value === 'string');
    if (this.#chance(0.3) && this.#seen.length > 0) return this.#pick(this.#seen);
    return (this.#chance(this.#hostility) ? this.#pick(hostile) : this.#pick(words)).toWellFormed();
  }

  #pick<Member>(list: readonly Member[]): Member {
    return list[Math.floor(this.#random() * list.length)] as Member;
  }

  #chance(part: number): boolean {
    return this.#random() < part;
  }
}
