import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { LimitSummary } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { Action } from '../../components/action.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { toast } from '../../components/toasts.tsx';

export interface Target {
  /** Null for the limit itself. */
  readonly key: string | null;
  readonly settings: LimitSummary['settings'];
}

interface ChangeLimitProps {
  readonly name: string;
  readonly target: Target;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Another bound, from now on and in all processes. An empty field is no bound. */
export function ChangeLimit({ name, target: { key, settings }, onClose, onDone }: ChangeLimitProps): VNode {
  const [concurrency, setConcurrency] = useState(textOf(settings.concurrency));
  const [total, setTotal] = useState(textOf(settings.total));
  const [starts, setStarts] = useState(textOf(settings.rate?.limit ?? null));
  const [perMs, setPerMs] = useState(settings.rate?.perMs ?? 1_000);
  const save = async (): Promise<void> => {
    const rate = starts === '' ? null : { limit: Number(starts), per: perMs };
    const isSameRate = rate?.limit === settings.rate?.limit && (rate === null || rate.per === settings.rate?.perMs);
    await call('setLimit', {
      params: { name },
      body: {
        concurrency: numberOf(concurrency),
        ...(key === null ? { total: numberOf(total) } : { key }),
        ...(!isSameRate && { rate }),
      },
    });
    toast('It holds for jobs that start from now on.');
    onDone();
    onClose();
  };
  return (
    <Dialog
      title={key === null ? `Change ${name}` : `Change the key ${key} of ${name}`}
      onClose={onClose}
      closeText="Leave it"
      actions={
        <Action tone="primary" act={save}>
          Save
        </Action>
      }
    >
      <p class="muted">An empty field is no bound. With 0 nothing starts. Jobs that run go on.</p>
      <div class="fields">
        <label class="field">
          <span>At once, per key</span>
          <input
            type="number"
            min="0"
            value={concurrency}
            onInput={(event) => setConcurrency(event.currentTarget.value)}
          />
        </label>
        {key === null && (
          <label class="field">
            <span>At once, all keys</span>
            <input type="number" min="0" value={total} onInput={(event) => setTotal(event.currentTarget.value)} />
          </label>
        )}
        <label class="field">
          <span>Starts</span>
          <input type="number" min="0" value={starts} onInput={(event) => setStarts(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>in a window of</span>
          <select value={String(perMs)} onChange={(event) => setPerMs(Number(event.currentTarget.value))}>
            {windows(perMs).map(([ms, title]) => (
              <option key={ms} value={String(ms)}>
                {title}
              </option>
            ))}
          </select>
        </label>
      </div>
    </Dialog>
  );
}

function textOf(value: number | null): string {
  return value === null ? '' : String(value);
}

function numberOf(text: string): number | null {
  return text === '' ? null : Number(text);
}

const usual: readonly [number, string][] = [
  [1_000, 'a second'],
  [60_000, 'a minute'],
  [3_600_000, 'an hour'],
];

/** Code may have chosen another one. */
function windows(perMs: number): readonly [number, string][] {
  return usual.some(([ms]) => ms === perMs) ? usual : [...usual, [perMs, `${perMs} ms`]];
}
