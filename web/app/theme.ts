import { useState } from 'preact/hooks';

/** What the system says, unless the person chose. */
export type Theme = 'system' | 'light' | 'dark';

const KEY = 'mulligan.theme';
const order: readonly Theme[] = ['system', 'light', 'dark'];

function storedTheme(): Theme {
  const stored = localStorage.getItem(KEY) as Theme;
  return order.includes(stored) ? stored : 'system';
}

export function applyTheme(theme: Theme = storedTheme()): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event('themechange'));
}

export function useTheme(): { readonly theme: Theme; readonly next: () => void } {
  const [theme, setTheme] = useState(storedTheme);
  const next = (): void => {
    const chosen = order[(order.indexOf(theme) + 1) % order.length] as Theme;
    localStorage.setItem(KEY, chosen);
    applyTheme(chosen);
    setTheme(chosen);
  };
  return { theme, next };
}
