import type { VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { Dialog } from '../components/dialog.tsx';
import { pages } from './pages.tsx';
import { goTo } from './router.ts';

/*
 * g and then a letter goes to a page, / to the search field of the page, ? shows this list. Not while a text is typed or a
 * dialog is open.
 */

const SECOND_KEY_MS = 1_500;

export function useKeyboard(showHelp: () => void): void {
  useEffect(() => {
    let pendingUntil = 0;
    const pressed = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector('dialog[open]') !== null) return;
      const isSecond = performance.now() < pendingUntil;
      pendingUntil = 0;
      if (isSecond) {
        const page = pages.find(({ key }) => key === event.key);
        if (page === undefined) return;
        event.preventDefault();
        goTo([page.path]);
      } else if (event.key === 'g') {
        pendingUntil = performance.now() + SECOND_KEY_MS;
      } else if (event.key === '/') {
        const search = document.querySelector<HTMLInputElement>('main input[type="search"]');
        if (search === null) return;
        event.preventDefault();
        search.focus();
        search.select();
      } else if (event.key === '?') {
        showHelp();
      }
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select') !== null;
}

export function KeyboardHelp({ onClose }: { readonly onClose: () => void }): VNode {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="facts">
        {pages.map(({ key, title, path }) => (
          <>
            <dt key={`${path} key`}>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd key={path}>{title}</dd>
          </>
        ))}
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Search on this page</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>Close a dialog; nothing is changed</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>This list</dd>
      </dl>
    </Dialog>
  );
}
