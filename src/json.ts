/*
 * Inputs and results travel as JSON, so a handler that is promised a Date would get a string. These types find that out
 * when the program is compiled.
 */

/** What JSON loses or turns into something else. */
type Lost =
  | bigint
  | symbol
  | ((...args: never[]) => unknown)
  | { toJSON(...args: never[]): unknown }
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | WeakMap<WeakKey, unknown>
  | WeakSet<WeakKey>
  | Promise<unknown>
  | Error
  | RegExp
  | ArrayBuffer
  | ArrayBufferView;

/** True for `any` and `unknown`, of which nothing is known. */
type IsOpen<T> = unknown extends T ? true : false;

/** The type itself, in which `never` stands for each part that JSON cannot carry. */
type Carried<T> =
  IsOpen<T> extends true
    ? T
    : T extends string | number | boolean | null | undefined
      ? T
      : T extends Lost
        ? never
        : // An index, and no array: the compiler looks into it only as far as it must, so a type may contain itself.
          T extends readonly (infer Element)[]
          ? { readonly [index: number]: Carried<Element> }
          : { [Key in keyof T]: Carried<T[Key]> };

/** A property that no object has: its name is the message of the compiler's error. */
interface NotJson {
  readonly 'expected an input that JSON can carry: no Date, Map, Set, bigint, class with toJSON or function (send a string or a plain object instead)': never;
}

/** `unknown` for an input that JSON can carry; else something that does not compile. */
export type JsonCheck<Input> =
  IsOpen<Input> extends true ? unknown : [Input] extends [Carried<Input>] ? unknown : NotJson;

/** What is left of a value after its trip through JSON: a Date is a string. */
export type AfterJson<T> =
  IsOpen<T> extends true
    ? T
    : // biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing has this type.
      T extends string | number | boolean | null | undefined | void
      ? T
      : T extends { toJSON(...args: never[]): infer Written }
        ? AfterJson<Written>
        : T extends Lost
          ? never
          : T extends readonly (infer Element)[]
            ? number extends T['length']
              ? AfterJson<Element>[]
              : { [Key in keyof T]: AfterJson<T[Key]> }
            : { [Key in keyof T]: AfterJson<T[Key]> };
