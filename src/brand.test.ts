import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { isBoxedPrimitive, isDate, isError, isUint8Array } from './brand.ts';

/** Its code must not run. */
const trap = (target: object): object =>
  new Proxy(target, {
    getPrototypeOf: () => {
      throw new Error('the code of a proxy ran');
    },
  });

describe('the kind of a value', () => {
  it('a Date is one in every realm, and nothing else is', () => {
    expect([new Date(), new Date(Number.NaN), runInNewContext('new Date()')].map(isDate)).toEqual([true, true, true]);
    const others = [
      null,
      undefined,
      1,
      '2026',
      {},
      Object.create(Date.prototype),
      trap(new Date()),
      { getTime: () => 1 },
    ];
    expect(others.map(isDate)).toEqual(others.map(() => false));
  });

  it('a boxed primitive is one in every realm, whatever others call themselves', () => {
    const boxed: object[] = [
      Object(1),
      Object('a'),
      Object(true),
      Object(1n),
      Object(Symbol()),
      runInNewContext('Object(1)'),
    ];
    expect(boxed.map(isBoxedPrimitive)).toEqual(boxed.map(() => true));
    const others: object[] = [{}, [], new Date(), { [Symbol.toStringTag]: 'Number' }, Object.create(Number.prototype)];
    expect(others.map(isBoxedPrimitive)).toEqual(others.map(() => false));
  });

  it('an error is one in every realm', () => {
    expect([new TypeError(), runInNewContext('new TypeError()')].map(isError)).toEqual([true, true]);
    expect(isError({ message: 'no' })).toBe(false);
  });

  it('bytes are told from other lists, and the code of a proxy does not run', () => {
    expect([Buffer.from('a'), new Uint8Array(1), runInNewContext('new Uint8Array(1)')].map(isUint8Array)).toEqual([
      true,
      true,
      true,
    ]);
    const others = [null, undefined, 'a', [1], new Uint16Array(1), trap(new Uint8Array(1))];
    expect(others.map(isUint8Array)).toEqual(others.map(() => false));
  });
});
