import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** Beside the button that closes it. */
  readonly actions?: ComponentChildren;
  readonly closeText?: string;
}

/** The browser keeps the focus inside, closes it with Escape, and gives the focus back. */
export function Dialog({ title, onClose, children, actions, closeText = 'Close' }: DialogProps): VNode {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <div class="dialog-body">
        <h2 id={id}>{title}</h2>
        {children}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={() => element.current?.close()}>
            {closeText}
          </button>
          {actions}
        </div>
      </div>
    </dialog>
  );
}
