import type { ComponentChildren, VNode } from 'preact';
import type { ApiError } from '../client/request.ts';

interface NoticeProps {
  readonly tone: 'bad' | 'warn' | 'good' | 'calm';
  readonly title: string;
  readonly children?: ComponentChildren;
}

export function Notice({ tone, title, children }: NoticeProps): VNode {
  return (
    <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : 'note'}>
      <strong>{title}</strong>
      {children}
    </div>
  );
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }): VNode {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

/** Why data could not be read; what was read before stays on the page. */
export function Trouble({ error }: { readonly error: ApiError | null }): VNode | null {
  if (error === null) return null;
  return (
    <Notice tone="bad" title="This could not be read">
      <p>{error.message}</p>
    </Notice>
  );
}
