import type { ComponentChildren, VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useIsAdmin } from '../app/session.ts';
import { asApiError } from '../client/use-data.ts';
import { toast } from './toasts.tsx';

interface ActionProps {
  /** Resolves when it is done, with what to say about it. */
  readonly act: () => Promise<string | undefined> | Promise<void> | void;
  readonly tone?: 'primary' | 'danger' | '';
  readonly isSmall?: boolean;
  readonly disabled?: boolean;
  /** For those who hear the page: which one of several. */
  readonly label?: string;
  readonly children: ComponentChildren;
}

/** A button that changes something. Without the scope admin it cannot be pressed, and says why. */
export function Action({ act, tone = '', isSmall, disabled = false, label, children }: ActionProps): VNode {
  const isAdmin = useIsAdmin();
  const [isBusy, setBusy] = useState(false);
  const press = async (): Promise<void> => {
    setBusy(true);
    try {
      const said = await act();
      if (typeof said === 'string') toast(said);
    } catch (error) {
      toast(asApiError(error).message, 'bad');
    } finally {
      setBusy(false);
    }
  };
  return (
    <button
      type="button"
      class={`button ${tone}${isSmall ? ' small' : ''}`}
      disabled={!isAdmin || isBusy || disabled}
      title={isAdmin ? undefined : 'This needs a token with the scope admin.'}
      aria-label={label}
      onClick={() => void press()}
    >
      {children}
    </button>
  );
}
