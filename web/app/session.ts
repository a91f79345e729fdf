import { type Context, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Operations } from '../client/operations.ts';

export type Session = Operations['getSession']['answer'];

export const SessionContext: Context<Session | null> = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('expected a page inside of a session');
  return session;
}

/** Whether the person may change things; without it, actions are shown and refused with the reason. */
export function useIsAdmin(): boolean {
  return useSession().scopes.includes('admin');
}
