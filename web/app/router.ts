import { useEffect, useState } from 'preact/hooks';

/*
 * Where the page is: `#/jobs?state=dead`. The part behind the # never reaches the server, so the dashboard works wherever it
 * is mounted, and an address can be sent to a colleague, filters included.
 */

export interface Location {
  /** `['jobs', id]`. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export function parseHash(hash: string): Location {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?');
  return {
    path: path
      .split('/')
      .filter((part) => part !== '')
      .map(decode),
    query: new URLSearchParams(query),
  };
}

/** An address that was typed by hand may not be well encoded. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

type Query = Readonly<Record<string, string | undefined>>;

/** An address inside of the dashboard; empty values are left out. */
export function linkTo(path: readonly string[], query: Query = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const search = new URLSearchParams(given).toString();
  return `#/${path.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`;
}

export function goTo(path: readonly string[], query: Query = {}): void {
  location.hash = linkTo(path, query);
}

/** Changes the filters of the page in its address, without a step in the history. */
export function replaceQuery(query: Query): void {
  history.replaceState(null, '', linkTo(parseHash(location.hash).path, query));
  dispatchEvent(new HashChangeEvent('hashchange'));
}

export function useLocation(): Location {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return parseHash(hash);
}
