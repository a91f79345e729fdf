import type { VNode } from 'preact';
import { LONGEST_DELAY_MS } from '../../../src/retry/backoff.ts';
import { type Draft, durationText, presets, readDuration } from './policy.ts';

interface EditorProps {
  readonly draft: Draft;
  readonly onChange: (draft: Draft) => void;
}

const kinds = ['exponential', 'linear', 'fibonacci', 'fixed'] as const;
const jitters = ['full', 'equal', 'decorrelated', 'spread', 'none'] as const;
const MOST_ATTEMPTS = 1_000;

export function Editor({ draft, onChange }: EditorProps): VNode {
  const change = (part: Partial<Draft>): void => onChange({ ...draft, ...part });
  const current = presets.find(([, preset]) => JSON.stringify(preset) === JSON.stringify(draft))?.[0] ?? '';
  return (
    <div class="fields">
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
      <label class="field">
        <span>Attempts</span>
        <input
          type="number"
          min="1"
          max={MOST_ATTEMPTS}
          value={draft.maxAttempts}
          onInput={(event) => {
            const maxAttempts = Math.floor(Number(event.currentTarget.value));
            if (maxAttempts >= 1 && maxAttempts <= MOST_ATTEMPTS) change({ maxAttempts });
          }}
        />
      </label>
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
        <label class="field">
          <span>Factor</span>
          <input
            type="number"
            min="1"
            step="any"
            value={draft.factor}
            onInput={(event) => {
              const factor = Number(event.currentTarget.value);
              if (factor >= 1) change({ factor });
            }}
          />
        </label>
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

interface DurationFieldProps {
  readonly title: string;
  readonly ms: number | null;
  readonly onChange: (ms: number) => void;
  readonly onEmpty?: () => void;
}

function DurationField({ title, ms, onChange, onEmpty }: DurationFieldProps): VNode {
  return (
    <label class="field">
      <span>{title}</span>
      <input
        type="text"
        placeholder="500ms, 30s, 5m, 2h"
        value={ms === null ? '' : durationText(ms)}
        pattern="\d+(\.\d+)?(ms|s|m|h|d)"
        onChange={(event) => {
          const text = event.currentTarget.value;
          const read = readDuration(text);
          if (read !== null) onChange(read);
          else if (text.trim() === '') onEmpty?.();
        }}
      />
    </label>
  );
}
