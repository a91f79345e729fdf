/*
 * Of which built-in kind a value is, in any realm: a test runner's has a Date of its own, and what user code gives may be a
 * proxy, whose code must not run. Only what has the internal slot passes. Node's `util.types` answers the same, and browsers
 * do not have it.
 */

export function isDate(value: unknown): value is Date {
  return isObject(value) && hasSlot(Date.prototype.getTime, value);
}

const boxes: Readonly<Record<string, () => unknown>> = {
  '[object Number]': Number.prototype.valueOf,
  '[object String]': String.prototype.valueOf,
  '[object Boolean]': Boolean.prototype.valueOf,
  '[object BigInt]': BigInt.prototype.valueOf,
  '[object Symbol]': Symbol.prototype.valueOf,
};

/** `new Number(1)` and the like. The tag, which costs little and may lie, comes first: nearly every object fails there. */
export function isBoxedPrimitive(value: object): boolean {
  const unbox = boxes[Object.prototype.toString.call(value)];
  return unbox !== undefined && hasSlot(unbox, value);
}

/** May run the code of a proxy. */
export function isError(value: object): boolean {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]';
}

const arrayKind = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)
  ?.get as () => string | undefined;

export function isUint8Array(value: unknown): value is Uint8Array {
  return arrayKind.call(value) === 'Uint8Array';
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function hasSlot(read: () => unknown, value: object): boolean {
  try {
    read.call(value);
    return true;
  } catch {
    return false;
  }
}
