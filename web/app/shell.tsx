import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { live } from '../client/live.ts';
import { token } from '../client/token.ts';
import { Icon } from '../components/icon.tsx';
import { Toasts } from '../components/toasts.tsx';
import icon from '../icon.svg';
import { KeyboardHelp, useKeyboard } from './keyboard.tsx';
import { type Page, pageOf, pages } from './pages.tsx';
import { linkTo, useLocation } from './router.ts';
import { useSession } from './session.ts';
import { useTheme } from './theme.ts';

/** What is around every page: navigation, who is signed in, whether the page is live. */
export function Shell(): VNode {
  const location = useLocation();
  const page = pageOf(location.path);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  useKeyboard(() => setHelpOpen(true));
  const where = location.path.join('/');
  // Each time another page is shown, and before a key can be pressed on it: a later focus would take it from the search.
  useLayoutEffect(() => {
    setMenuOpen(false);
    document.title = `${page?.title ?? 'Not found'} · Mulligan`;
    scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [where]);
  return (
    <div class="shell">
      <div class="menu-bar">
        <a class="brand" href={linkTo(['overview'])}>
          <img src={icon} alt="" />
          Mulligan
        </a>
        <button type="button" class="button small" aria-expanded={isMenuOpen} onClick={() => setMenuOpen(!isMenuOpen)}>
          Menu
        </button>
      </div>
      <Sidebar current={page} isOpen={isMenuOpen} onHelp={() => setHelpOpen(true)} />
      <main class="main" ref={main} tabIndex={-1}>
        {page === null ? <NotFound /> : page.show(location)}
      </main>
      <Toasts />
      {isHelpOpen && <KeyboardHelp onClose={() => setHelpOpen(false)} />}
    </div>
  );
}

interface SidebarProps {
  readonly current: Page | null;
  readonly isOpen: boolean;
  readonly onHelp: () => void;
}

function Sidebar({ current, isOpen, onHelp }: SidebarProps): VNode {
  const session = useSession();
  const { theme, next } = useTheme();
  return (
    <header class={`sidebar${isOpen ? ' is-open' : ''}`}>
      <div class="sidebar-inner">
        <a class="brand" href={linkTo(['overview'])}>
          <img src={icon} alt="" />
          Mulligan
        </a>
        <nav class="nav" aria-label="Pages">
          <ul>
            {pages.map((page) => (
              <li key={page.path}>
                <a href={linkTo([page.path])} {...(page === current && { 'aria-current': 'page' as const })}>
                  <Icon name={page.icon} />
                  {page.title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="sidebar-foot">
          <LiveState />
          <span>
            <bdi>{session.name}</bdi>
            {session.scopes.includes('admin') ? '' : ', read-only'}
          </span>
          <div class="row">
            <button type="button" class="button small" onClick={next}>
              Theme: {theme}
            </button>
            <button type="button" class="button small" onClick={onHelp} aria-label="Keyboard shortcuts">
              ?
            </button>
            {token.get() !== null && (
              <button type="button" class="button small" onClick={() => token.signOut()}>
                Sign out
              </button>
            )}
          </div>
          <span>
            {session.version}, {session.store}
          </span>
        </div>
      </div>
    </header>
  );
}

const liveWords = { connecting: 'Connecting', live: 'Live', polling: 'Not live: asking every few seconds' } as const;

function LiveState(): VNode {
  const [state, setState] = useState(live.state);
  useEffect(() => {
    // It may have become live since this was first drawn.
    setState(live.state);
    return live.onState(() => setState(live.state));
  }, []);
  return (
    <span class="live-state" role="status">
      <Icon name={state === 'live' ? 'live' : 'polling'} />
      {liveWords[state]}
    </span>
  );
}

function NotFound(): VNode {
  return (
    <div class="page">
      <h1>There is no such page</h1>
      <p>
        <a href={linkTo(['overview'])}>Go to the overview</a>
      </p>
    </div>
  );
}
