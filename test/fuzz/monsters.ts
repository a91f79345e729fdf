import fc from 'fast-check';

/*
 * Much bad input cannot be held, compared or printed by fast-check itself: a proxy whose every trap throws, a getter
 * that answers something else each time. So a case holds a recipe, the call under test gets what the recipe makes, and
 * a counterexample shows the recipe.
 */

/** A value that is made when it is used, and shown as the code that makes it. */
export class Recipe<T = unknown> {
  readonly make: () => T;
  readonly #shown: string;

  constructor(make: () => T, shown: string = String(make)) {
    this.make = make;
    this.#shown = shown;
  }

  static of<T>(value: T): Recipe<T> {
    return new Recipe(() => value, fc.stringify(value));
  }

  [fc.toStringMethod](): string {
    return this.#shown;
  }
}

class Hostility extends Error {
  override name = 'Hostility';
}

export function refuse(): never {
  throw new Hostility('the caller’s own code threw');
}

/** Every trap throws. */
export function refusing<T extends object>(target: T): T {
  return new Proxy(target, new Proxy({}, { get: () => refuse }) as ProxyHandler<T>);
}

export function revoked<T extends object>(target: T): T {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** Every property is another such object, callable, without end. */
export function endless(): object {
  return new Proxy(() => {}, { get: () => endless(), apply: () => endless() });
}

function bottomless(): object {
  return new Proxy(
    {},
    {
      ownKeys: () => ['a'],
      getOwnPropertyDescriptor: () => ({ value: bottomless(), enumerable: true, configurable: true }),
      get: (_, key) => (key === 'toJSON' ? undefined : bottomless()),
    },
  );
}

function cycle(): object {
  const loop: Record<string, unknown> = {};
  loop.loop = loop;
  return loop;
}

class Classy {
  readonly #hidden = 1;
  get hidden(): number {
    return this.#hidden;
  }
}

/** Dates that answer for themselves. */
export const forgedDates: readonly Recipe[] = ['soon', -0.5, Number.NaN, refuse].map((time) => {
  const getTime = typeof time === 'function' ? time : (): unknown => time;
  return new Recipe(() => Object.assign(new Date(0), { getTime }), `a Date whose getTime is ${String(getTime)}`);
});

/** What no schema of ours expects anywhere. */
export const monsters: readonly Recipe[] = [
  () => refusing({}),
  () => refusing([]),
  () => refusing(() => {}),
  () => refusing(new Date(0)),
  () => revoked({}),
  () => revoked([]),
  () => revoked(() => {}),
  () => bottomless(),
  () => cycle(),
  () => Object.create(refusing({})),
  () => Object.create({ name: 'inherited', delay: 5, grace: 5 }),
  () => Object.create(null),
  () => new Proxy({}, { ownKeys: () => ['lie'] }),
  () => new Proxy({}, { getPrototypeOf: refuse }),
  () => new Proxy([], { get: (_, key) => (key === 'length' ? refuse() : 1) }),
  () => Object.assign([1], { [Symbol.iterator]: refuse }),
  () => Object.assign([], { map: 5, length: 2 }),
  () => Object.defineProperty([0], '0', { get: refuse }),
  () => Object.defineProperty({}, 'name', { get: refuse, enumerable: true }),
  () => ({ toString: refuse, valueOf: refuse, [Symbol.toPrimitive]: refuse }),
  () => ({ toJSON: refuse }),
  () => ({ toJSON: () => refusing({}) }),
  () => Object.defineProperty({}, 'then', { get: refuse, enumerable: true }),
  () => ({ ['then' as string]: 5, constructor: null }),
  () => JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
  () => new Array(1),
  () => Object.assign(new Array(3), { 1: 'a' }),
  () => new Array(2 ** 32 - 1),
  () => 'x'.repeat(300_000),
  () => `1${'a'.repeat(50_000)}`,
  () => '1'.repeat(400),
  () => ({ ['k'.repeat(100_000)]: 1 }),
  () => ({ ['k'.repeat(100_000)]: 1n }),
  () => '\ud800',
  () => 'a\0b',
  () => '__proto__',
  () => '',
  () => Symbol('s'),
  () => Symbol.iterator,
  () => 10n ** 400n,
  () => Object(1n),
  () => Object(Symbol('boxed')),
  () => new String('boxed'),
  () => new Date(Number.NaN),
  () => new Date(8.64e15),
  () => new Classy(),
  () => new Map([['a', 1]]),
  () => new Set(['a']),
  () => new WeakMap(),
  () => new Uint8Array(3),
  () => /a/g,
  () => new Error('a value, not thrown'),
  () => Promise.resolve(1),
  () => async () => {},
  () => function* generator() {},
  () => class {},
  () => globalThis,
  () => Number.MAX_SAFE_INTEGER,
  () => Number.MAX_VALUE,
  () => Number.MIN_VALUE,
  () => -0,
  () => Number.NaN,
  () => Number.POSITIVE_INFINITY,
  () => -1,
  () => 0.5,
  () => null,
  () => undefined,
  () => true,
].map((make) => new Recipe(make));
