import type { VNode } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';
import { checkInteger } from '../../../src/config.ts';
import { formatDuration, parseDuration } from '../../../src/duration.ts';
import { LONGEST_DELAY_MS } from '../../../src/retry/backoff.ts';
import { checkDraft, type Draft, presets } from './policy.ts';

interface EditorProps {
  readonly draft: Draft;
  readonly onChange: (draft: Draft) => void;
}

const kinds = ['exponential', 'linear', 'fibonacci', 'fixed'] as const;
const jitters = ['full', 'equal', 'decorrelated', 'spread', 'none'] as const;
const MOST_ATTEMPTS = 1_000;

export function Editor({ draft, onChange }: EditorProps): VNode {
  const change = (part: Partial<Draft>): void => onChange(checkDraft({ ...draft, ...part }));
  const current = presets.find(([, preset]) => JSON.stringify(preset) === JSON.stringify(draft))?.[0] ?? '';
  return (
    <div class="fields checked-fields">
      <label class="field">
        <span>Begin with</span>
        <select
          value={current}
          onChange={(event) => {
            const chosen = presets.find(([name]) => name === event.currentTarget.value);
            if (chosen !== undefined) onChange(chosen[1]);
          }}
        >
          {current === '' && <option value="">my own</option>}
          {presets.map(([name]) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <CheckedField
        title="Attempts"
        kind="figure"
        value={String(draft.maxAttempts)}
        onText={(text) =>
          change({ maxAttempts: checkInteger(figure(text), 'Attempts', { min: 1, max: MOST_ATTEMPTS }) })
        }
      />
      <label class="field">
        <span>Backoff</span>
        <select value={draft.kind} onChange={(event) => change({ kind: event.currentTarget.value as Draft['kind'] })}>
          {kinds.map((kind) => (
            <option key={kind}>{kind}</option>
          ))}
        </select>
      </label>
      <DurationField title="First delay" ms={draft.baseMs} onChange={(baseMs) => change({ baseMs })} />
      {draft.kind === 'exponential' && (
        <CheckedField
          title="Factor"
          kind="figure"
          value={String(draft.factor)}
          onText={(text) => change({ factor: figure(text) as number })}
        />
      )}
      {draft.kind !== 'fixed' && (
        <DurationField
          title="Longest delay"
          ms={draft.maxMs === LONGEST_DELAY_MS ? null : draft.maxMs}
          onChange={(maxMs) => change({ maxMs })}
          onEmpty={() => change({ maxMs: LONGEST_DELAY_MS })}
        />
      )}
      <label class="field">
        <span>Jitter</span>
        <select
          value={draft.jitter}
          onChange={(event) => change({ jitter: event.currentTarget.value as Draft['jitter'] })}
        >
          {jitters.map((jitter) => (
            <option key={jitter} value={jitter}>
              {jitter === 'spread' ? 'spread 0.2' : jitter}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** Text that is no number stays as it is, so that what is wrong with it can name it. */
function figure(text: string): number | string {
  return text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text);
}

interface DurationFieldProps {
  readonly title: string;
  readonly ms: number | null;
  readonly onChange: (ms: number) => void;
  readonly onEmpty?: () => void;
}

function DurationField({ title, ms, onChange, onEmpty }: DurationFieldProps): VNode {
  return (
    <CheckedField
      title={title}
      kind="duration"
      placeholder="500ms, 30s, 5m, 2h"
      value={ms === null ? '' : formatDuration(ms)}
      onText={(text) => {
        if (text.trim() === '' && onEmpty !== undefined) onEmpty();
        else onChange(parseDuration(text.trim(), title));
      }}
    />
  );
}

interface CheckedFieldProps {
  readonly title: string;
  readonly kind: 'figure' | 'duration';
  readonly placeholder?: string;
  readonly value: string;
  /** Throws what is wrong with it. */
  readonly onText: (text: string) => void;
}

/** What is wrong with a text is said below it, in the words of the library; the policy stays as it was. */
function CheckedField({ title, kind, placeholder, value, onText }: CheckedFieldProps): VNode {
  const [wrong, setWrong] = useState<{ readonly text: string; readonly problem: string } | null>(null);
  const id = useId();
  // A preset that is chosen meanwhile has the last word.
  useEffect(() => setWrong(null), [value]);
  return (
    <label class="field">
      <span>{title}</span>
      <input
        type="text"
        inputMode={kind === 'figure' ? 'decimal' : 'text'}
        placeholder={placeholder}
        value={wrong?.text ?? value}
        aria-invalid={wrong !== null}
        aria-describedby={wrong === null ? undefined : id}
        onChange={(event) => {
          const text = event.currentTarget.value;
          try {
            onText(text);
            setWrong(null);
          } catch (error) {
            setWrong({ text, problem: (error as Error).message });
          }
        }}
      />
      {wrong !== null && (
        <small id={id} class="problem" role="alert">
          {wrong.problem}
        </small>
      )}
    </label>
  );
}
