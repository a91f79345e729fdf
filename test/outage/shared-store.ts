import type { Store } from '../../src/store/store.ts';

/** A store that several Mulligans share, as processes share a database: closing one of them does not close it. */
export function sharedStore(store: Store): Store {
  return new Proxy(store, {
    get: (target, key) => {
      if (key === 'close') return async () => {};
      const value = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
