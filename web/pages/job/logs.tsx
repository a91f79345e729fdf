import type { TargetedEvent, VNode } from 'preact';
import type { LogLine, RunLog } from '../../client/answers.ts';
import { clock, count, moment } from '../../components/format.ts';

/** What runs logged, newest run first; the newest is open. */
export function Logs({ logs }: { readonly logs: readonly RunLog[] }): VNode | null {
  if (logs.length === 0) return null;
  return (
    <section class="card stack">
      <h2>Log</h2>
      {logs.map(({ run, lines, dropped }, index) => (
        <details key={run} open={index === 0} onToggle={showEnd}>
          <summary>
            Run {run} <span class="muted">{count(lines.length, 'line')}</span>
          </summary>
          {dropped > 0 && <p class="muted">{count(dropped, 'earlier line')} not kept</p>}
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
          <ol class="log" tabIndex={0} aria-label={`Log of run ${run}`}>
            {lines.map((line, position) => (
              <Line key={position} line={line} />
            ))}
          </ol>
        </details>
      ))}
    </section>
  );
}

/** The last lines say how the run ended. */
function showEnd({ currentTarget }: TargetedEvent<HTMLDetailsElement>): void {
  const list = currentTarget.querySelector('ol');
  if (list !== null) list.scrollTop = list.scrollHeight;
}

function Line({ line: { level, at, message, fields } }: { readonly line: LogLine }): VNode {
  return (
    <li>
      <time dateTime={new Date(at).toISOString()} title={moment(at)}>
        {clock(at)}
      </time>
      <span class={`log-level log-${level}`}>{level}</span>
      <span class="log-text">
        <bdi>{message}</bdi>
        {fields !== undefined && <bdi class="muted"> {JSON.stringify(fields)}</bdi>}
      </span>
    </li>
  );
}
