import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { Chart } from '../../components/chart.tsx';
import { Tile } from '../../components/facts.tsx';
import { count, span } from '../../components/format.ts';
import { Page } from '../../components/page.tsx';
import { toast } from '../../components/toasts.tsx';
import { LedgerAdvice } from './advice.tsx';
import { Editor } from './editor.tsx';
import { codeOf, type Draft, MOST_WAITS, medianTotal, presets, waitsOf } from './policy.ts';
import { Simulation } from './simulation.tsx';

/** A policy, and what it means for a job that fails. */
export function PolicyLabPage(): VNode {
  const [draft, setDraft] = useState<Draft>((presets[0] as (typeof presets)[number])[1]);
  const waits = waitsOf(draft);
  const total = (pick: 'shortestMs' | 'wholeMs' | 'longestMs'): number =>
    waits.reduce((sum, wait) => sum + wait[pick], 0);
  const code = codeOf(draft);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(code);
      toast('Copied.');
    } catch {
      toast('The browser does not let pages copy here. Select the text instead.', 'bad');
    }
  };
  return (
    <Page
      title="Policy lab"
      lead="Change a policy, and see when a job that keeps failing is tried again. Nothing here changes the queue."
    >
      <section class="card stack">
        <h2>Policy</h2>
        <Editor draft={draft} onChange={setDraft} />
      </section>
      <div class="tiles">
        <Tile
          label="Attempts"
          value={String(draft.maxAttempts)}
          note={count(Math.max(0, draft.maxAttempts - 1), 'retry', 'retries')}
        />
        <Tile label="Kept trying for" value={span(medianTotal(draft))} note="half of the jobs, jitter included" />
        <Tile label="At least" value={span(total('shortestMs'))} note="by the luckiest draws" />
        <Tile label="At most" value={span(total('longestMs'))} note={`${span(total('wholeMs'))} before jitter`} />
      </div>
      {waits.length > 0 && (
        <section class="card stack">
          <h2>The wait after each attempt</h2>
          <Chart
            label={`Waits: ${waits.map(({ attempt, shortestMs, longestMs }) => `after attempt ${attempt} ${span(shortestMs)} to ${span(longestMs)}`).join(', ')}`}
            at={waits.map(({ attempt }) => attempt)}
            x={(attempt) => (Number.isInteger(attempt) ? String(attempt) : '')}
            y={span}
            height={240}
            series={[
              {
                title: 'Where jitter may put it',
                colour: 1,
                values: waits.map(({ longestMs }) => longestMs),
                downTo: waits.map(({ shortestMs }) => shortestMs),
              },
              { title: 'The delay itself', colour: 2, dash: [6, 4], values: waits.map(({ wholeMs }) => wholeMs) },
            ]}
          />
          {draft.maxAttempts > MOST_WAITS + 1 && (
            <p class="muted">The first {MOST_WAITS} waits are shown and added up.</p>
          )}
        </section>
      )}
      <Simulation draft={draft} />
      <LedgerAdvice />
      <section class="card stack">
        <div class="card-head">
          <h2>As code</h2>
          <button type="button" class="button small" onClick={() => void copy()}>
            Copy
          </button>
        </div>
        <pre class="json" data-testid="policy-code">
          {code}
        </pre>
      </section>
    </Page>
  );
}
