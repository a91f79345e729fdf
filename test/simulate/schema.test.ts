import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { checkBySchema } from '../../src/simulate/check.ts';
import { type JsonSchema, policySchema, scenarioNames, scenarioSchema, scenarios } from '../../src/simulate/index.ts';

/* Another reader of JSON Schema has to agree with ours on what a valid file is: an editor is one as well. */

const docs = '../../docs';

function accepts(value: unknown, schema: JsonSchema): boolean {
  try {
    checkBySchema(value, schema, 'file');
    return true;
  } catch {
    return false;
  }
}

function asReadByOthers(schema: JsonSchema): z.ZodType {
  return z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
}

/** A file with one thing changed at any depth: a field gone, added, or of another value. */
function changed(file: unknown): fc.Arbitrary<unknown> {
  const places = pathsOf(file);
  const values = fc.constantFrom<unknown>(
    null,
    true,
    '',
    '5s',
    '5 s',
    'constant',
    'bug',
    0,
    -1,
    0.5,
    1,
    2.5,
    1_001,
    1e9,
    [],
    {},
    ['5s'],
    { kind: 'fixed' },
    { spread: 0.5 },
  );
  return fc
    .record({
      place: fc.constantFrom(...places),
      what: fc.constantFrom('set', 'drop', 'add'),
      value: values,
      name: fc.constantFrom('kind', 'rate', 'share', 'unknown', 'limit'),
    })
    .map(({ place, what, value, name }) => {
      const copy: unknown = structuredClone(file);
      const parent = place
        .slice(0, -1)
        .reduce<Record<string, unknown>>(
          (at, key) => at[key] as Record<string, unknown>,
          copy as Record<string, unknown>,
        );
      const last = place.at(-1) as string;
      if (what === 'set') parent[last] = value;
      else if (what === 'add') parent[name] = value;
      else if (Array.isArray(parent)) parent.splice(Number(last), 1);
      else delete parent[last];
      return copy;
    });
}

function pathsOf(value: unknown, above: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.keys(value).flatMap((key) => [
    [...above, key],
    ...pathsOf((value as Record<string, unknown>)[key], [...above, key]),
  ]);
}

const policy = {
  name: 'mine',
  gate: 'soft',
  retry: {
    maxAttempts: 3,
    jitter: { spread: 0.2 },
    backoff: { kind: 'exponential', base: '1s', max: 5_000 },
    deadline: '1h',
  },
};
const all = {
  ...scenarios['outage-10m'],
  poison: { share: 0.1, answer: 'bug' },
  workers: 2,
  limit: { concurrency: 5, rate: { limit: 10, per: '1s' } },
  dependency: { ...scenarios.flapping.dependency, retryAfter: '5s', errors: { bug: 0.01 } },
};

describe('the JSON Schema of', () => {
  it.each<[string, JsonSchema, unknown]>([
    ['scenarios', scenarioSchema, all],
    ['scenarios of a burst', scenarioSchema, scenarios['rate-limit']],
    ['policies', policySchema, policy],
  ])('%s means the same to another reader', (_, schema, file) => {
    const others = asReadByOthers(schema);
    expect([accepts(file, schema), others.safeParse(file).success]).toEqual([true, true]);
    const seen = { accepted: 0, refused: 0 };
    fc.assert(
      fc.property(changed(file), (one) => {
        const ours = accepts(one, schema);
        seen[ours ? 'accepted' : 'refused']++;
        expect(others.safeParse(one).success, JSON.stringify(one)).toBe(ours);
      }),
      { numRuns: 500, seed: 7 },
    );
    expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(20);
  });

  it.each(scenarioNames)('scenarios accepts the preset %s', (name) => {
    expect(asReadByOthers(scenarioSchema).safeParse(scenarios[name]).success).toBe(true);
  });

  it('scenarios and policies is published as a file', async () => {
    const text = (schema: JsonSchema): string => `${JSON.stringify(schema, null, 2)}\n`;
    await expect(text(scenarioSchema)).toMatchFileSnapshot(`${docs}/simulate-scenario.schema.json`);
    await expect(text(policySchema)).toMatchFileSnapshot(`${docs}/simulate-policy.schema.json`);
  });
});
