import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { live } from '../client/live.ts';
import { type ApiError, call } from '../client/request.ts';
import { token } from '../client/token.ts';
import { asApiError } from '../client/use-data.ts';
import { Notice } from '../components/notice.tsx';
import { type Session, SessionContext } from './session.ts';
import { Shell } from './shell.tsx';
import { SignIn } from './sign-in.tsx';

type Entry = { readonly session: Session | null; readonly error: ApiError | null };

/** Finds out who is there, and asks for a token where one is needed. */
export function App(): VNode | null {
  const [{ session, error }, setEntry] = useState<Entry>({ session: null, error: null });
  const [round, setRound] = useState(0);
  useEffect(() => token.onChange(() => setRound((before) => before + 1)), []);
  // A round begins when the token changed.
  useEffect(() => {
    if (token.isRefused()) {
      live.stop();
      setEntry((before) => ({ session: null, error: before.error }));
      return;
    }
    call('getSession', {}).then(
      (answer) => {
        setEntry({ session: answer, error: null });
        live.start();
      },
      (failure: unknown) => setEntry({ session: null, error: asApiError(failure) }),
    );
    return () => live.stop();
  }, [round]);

  if (session !== null) {
    return (
      <SessionContext.Provider value={session}>
        <Shell />
      </SessionContext.Provider>
    );
  }
  if (error === null && !token.isRefused()) return null;
  if (error === null || error.status === 401) return <SignIn wasRefused={token.get() !== null} />;
  return (
    <main class="sign-in">
      <Notice tone="bad" title="The dashboard cannot be shown">
        <p>{error.message}</p>
        <p>
          <button type="button" class="button" onClick={() => setRound(round + 1)}>
            Try again
          </button>
        </p>
      </Notice>
    </main>
  );
}
