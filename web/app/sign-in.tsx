import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { token } from '../client/token.ts';
import { Notice } from '../components/notice.tsx';
import icon from '../icon.svg';

export function SignIn({ wasRefused }: { readonly wasRefused: boolean }): VNode {
  const [value, setValue] = useState('');
  const submit = (event: Event): void => {
    event.preventDefault();
    if (value.trim() !== '') token.set(value.trim());
  };
  return (
    <main class="sign-in">
      <form class="card" onSubmit={submit}>
        <div class="brand">
          <img src={icon} alt="" />
          Mulligan
        </div>
        <h1>Sign in</h1>
        {wasRefused && (
          <Notice tone="bad" title="This server does not know the token">
            <p>It may have been revoked, or a part of it is missing.</p>
          </Notice>
        )}
        <label class="field">
          <span>Token</span>
          <input
            type="password"
            name="token"
            autocomplete="off"
            spellcheck={false}
            required
            value={value}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
          <small>
            Create one with <code>mulligan token create NAME --scopes read</code>. It is kept until this tab is closed.
          </small>
        </label>
        <button type="submit" class="button primary">
          Sign in
        </button>
      </form>
    </main>
  );
}
