import { randomBytes, randomInt, randomUUID } from 'node:crypto';

function charge(card: string): never {
  throw Object.assign(new Error(`card ${card} was declined`), { code: 'CARD_DECLINED' });
}

function refund(card: string): never {
  throw Object.assign(new Error(`card ${card} was declined`), { code: 'CARD_DECLINED' });
}

function failWith(error: unknown): never {
  throw error;
}

const host = (): string => `${randomInt(256)}.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`;
const hex = (): string => randomBytes(8).toString('hex');
const number = (): string => String(randomInt(1_000_000));

/** Twelve kinds of errors; each call has other ids in its message. */
export const kinds: readonly (() => never)[] = [
  () => charge(number()),
  () => refund(number()),
  () => failWith(new TypeError(`Cannot read properties of undefined (reading '${hex()}')`)),
  () => failWith(Object.assign(new Error(`connect ECONNREFUSED ${host()}:${number()}`), { code: 'ECONNREFUSED' })),
  () => failWith(Object.assign(new Error(`GET https://${hex()}.example.com/${number()} failed`), { status: 422 })),
  () => failWith(Object.assign(new Error(`GET https://${hex()}.example.com/${number()} failed`), { status: 404 })),
  () => failWith(new Error(`order ${randomUUID()} has no customer`)),
  () => failWith(new Error(`duplicate key value violates unique constraint "${hex()}_key"`)),
  () => failWith(new RangeError(`offset ${number()} is beyond ${number()} in 0x${hex()}`)),
  () => failWith(`no template for ${hex()}@example.com`),
  () => failWith(new Error(`open /var/data/${hex()}/${number()}.json failed after ${number()}ms`)),
  () => failWith(new Error('the import failed', { cause: Object.assign(new Error(hex()), { code: 'EIMPORT' }) })),
];
