import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { JobState } from '../../../src/job.ts';
import { goTo } from '../../app/router.ts';
import { Icon } from '../../components/icon.tsx';

type Filter = Readonly<Record<string, string>>;

interface FiltersProps {
  readonly filter: Filter;
  readonly onChange: (changed: Readonly<Record<string, string | undefined>>) => void;
}

const states: readonly JobState[] = ['ready', 'running', 'retrying', 'scheduled', 'completed', 'dead', 'cancelled'];
const reasons = ['exhausted', 'unrecoverable', 'deadline', 'poison', 'no-handler', 'runs'];
const texts = [
  ['name', 'Job name'],
  ['queue', 'Queue'],
  ['tag', 'Tag'],
  ['key', 'Key'],
  ['error', 'Error group'],
] as const;
const times = [
  ['', 'any time'],
  ['10m', '10 minutes'],
  ['1h', 'an hour'],
  ['1d', 'a day'],
  ['7d', '7 days'],
] as const;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The one selection, as it stands in the address of the page. */
export function Filters({ filter, onChange }: FiltersProps): VNode {
  const chosen = filter.state?.split(',') ?? [];
  const toggle = (state: JobState): void => {
    const next = chosen.includes(state) ? chosen.filter((one) => one !== state) : [...chosen, state];
    onChange({ state: next.join(',') });
  };
  const hasMore = [...texts.map(([name]) => name), 'reason', 'attempts', 'since'].some(
    (name) => filter[name] !== undefined,
  );
  return (
    <div class="card stack">
      <Search filter={filter} onChange={onChange} />
      <fieldset class="filter-chips plain-fieldset">
        <legend class="visually-hidden">States</legend>
        {states.map((state) => (
          <button
            key={state}
            type="button"
            class="chip"
            aria-pressed={chosen.includes(state)}
            onClick={() => toggle(state)}
          >
            <Icon name={state} />
            {state}
          </button>
        ))}
      </fieldset>
      <details open={hasMore}>
        <summary>More filters</summary>
        <div class="fields">
          {texts.map(([name, title]) => (
            <label key={name} class="field">
              <span>{title}</span>
              <input
                type="text"
                value={filter[name] ?? ''}
                maxLength={200}
                onChange={(event) => onChange({ [name]: event.currentTarget.value })}
              />
            </label>
          ))}
          <label class="field">
            <span>Dead because</span>
            <select value={filter.reason ?? ''} onChange={(event) => onChange({ reason: event.currentTarget.value })}>
              <option value="">any reason</option>
              {reasons.map((reason) => (
                <option key={reason}>{reason}</option>
              ))}
            </select>
          </label>
          <label class="field">
            <span>At least so many attempts</span>
            <input
              type="number"
              min="0"
              value={filter.attempts ?? ''}
              onChange={(event) => onChange({ attempts: event.currentTarget.value })}
            />
          </label>
          <label class="field">
            <span>Ended or enqueued within</span>
            <select value={filter.since ?? ''} onChange={(event) => onChange({ since: event.currentTarget.value })}>
              {times.map(([value, title]) => (
                <option key={value} value={value}>
                  {title}
                </option>
              ))}
            </select>
          </label>
        </div>
      </details>
    </div>
  );
}

function Search({ filter, onChange }: FiltersProps): VNode {
  const [where, setWhere] = useState<'message' | 'payload'>(filter.payload === undefined ? 'message' : 'payload');
  const [text, setText] = useState(filter.payload ?? filter.message ?? '');
  const search = (inWhere: 'message' | 'payload'): void => {
    const sought = text.trim().slice(0, 200);
    if (UUID.test(sought)) goTo(['jobs', sought.toLowerCase()]);
    else onChange({ message: undefined, payload: undefined, [inWhere]: sought });
  };
  return (
    <form
      class="search-row"
      onSubmit={(event) => {
        event.preventDefault();
        search(where);
      }}
    >
      <label class="visually-hidden" for="job-search">
        Search
      </label>
      <input
        id="job-search"
        type="search"
        placeholder="Search, or paste the id of a job"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <select
        aria-label="Search in"
        value={where}
        onChange={(event) => {
          const chosen = event.currentTarget.value as 'message' | 'payload';
          setWhere(chosen);
          if (text !== '') search(chosen);
        }}
      >
        <option value="message">in error messages</option>
        <option value="payload">in payloads</option>
      </select>
      <button type="submit" class="button">
        Search
      </button>
    </form>
  );
}
