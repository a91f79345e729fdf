import type { RegisteredWorker } from '../store/store.ts';
import type { Cell } from './table.ts';

const styles = { silent: 'yellow', lost: 'red' } as const;

/** A text about a worker, in the colour of its state. */
export function inStateColour({ state }: RegisteredWorker, text: string): Cell {
  return state === 'alive' ? text : { text, style: styles[state] };
}

/** `3/10`: running when it was last seen, of those that it runs at once. */
export function runningText({ running, concurrency }: RegisteredWorker): string {
  return `${running ?? '-'}/${concurrency}`;
}
