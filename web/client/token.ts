/*
 * The token of the person at the page. It is kept for this tab alone, so that it is gone when the tab is closed, and it is sent
 * in a header, never in an address.
 */

const KEY = 'mulligan.token';
const listeners = new Set<() => void>();
let wasRefused = false;

export const token = {
  get: (): string | null => sessionStorage.getItem(KEY),

  set(value: string | null): void {
    wasRefused = false;
    if (value === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, value);
    for (const listener of listeners) listener();
  },

  /** The server does not know the token that was sent, or wants one. */
  refuse(): void {
    if (wasRefused) return;
    wasRefused = true;
    for (const listener of listeners) listener();
  },

  signOut(): void {
    this.set(null);
    this.refuse();
  },

  isRefused: (): boolean => wasRefused,

  onChange(listener: () => void): () => void {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  },
};
