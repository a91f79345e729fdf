import type { ComponentChildren, VNode } from 'preact';
import type { Loaded } from '../client/use-data.ts';
import { Trouble } from './notice.tsx';

interface PageProps {
  readonly title: ComponentChildren;
  readonly lead?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Page({ title, lead, actions, children }: PageProps): VNode {
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>{title}</h1>
          {lead !== undefined && <p>{lead}</p>}
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </div>
      {children}
    </div>
  );
}

interface WhenLoadedProps<T> {
  readonly from: Loaded<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** Shows what was read, and beside it why it could not be read again. */
export function WhenLoaded<T>({ from: { data, error }, children }: WhenLoadedProps<T>): VNode {
  return (
    <>
      <Trouble error={error} />
      {data === null && error === null && <p class="reading muted">Reading…</p>}
      {data !== null && children(data)}
    </>
  );
}
