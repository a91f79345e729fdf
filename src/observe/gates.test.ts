import { describe, expect, it } from 'vitest';
import { closedGate, type GateEvent, type GateFigures, pin, unpin } from '../gate/index.ts';
import type { GateRef } from '../store/store.ts';
import { type EventMap, Events } from './events.ts';
import { eventLine, rateWords, shortReason } from './gate-words.ts';
import { reportGate } from './gates.ts';
import { type LogEntry, makeLogger } from './log.ts';
import { Metrics } from './metrics.ts';

const NOW = Date.UTC(2026, 0, 1);
const smtp: GateRef = { kind: 'resource', name: 'smtp' };
const figures: GateFigures = {
  ...{ alive: 3, environment: 12, distinctJobs: 9, failingWorkers: 2, workers: 3, streak: 12 },
  ...{ peak: 80, limit: null, heldUntil: null },
};
const opened: GateEvent = {
  ...{ at: NOW, change: 'opened', from: 'closed', to: 'open', rule: 'fast', epoch: NOW, who: null, figures },
};

function observers() {
  const log: LogEntry[] = [];
  const seen: EventMap['gate'][] = [];
  const events = new Events(() => {});
  events.on('gate', (event) => seen.push(event));
  const metrics = new Metrics('m');
  const changes = () => metrics.render().match(/^m_gate_changes_total\{.*$/gm);
  return {
    log,
    seen,
    changes,
    to: {
      events,
      metrics,
      log: makeLogger(
        (entry) => log.push(entry),
        () => ({}),
      ),
    },
  };
}

describe('reportGate', () => {
  it('tells of a change by one event, one log line and one count', () => {
    const { log, seen, changes, to } = observers();
    reportGate(to, smtp, opened);
    const { epoch: _, ...told } = opened;
    expect(seen).toEqual([{ gate: smtp, ...told }]);
    expect(log).toEqual([
      {
        level: 'warn',
        message:
          'gate smtp opened: streak of 12 failures; within 30s failures of at least 9 jobs and 2 workers (rule fast)',
        gate: 'smtp',
        kind: 'resource',
        change: 'opened',
      },
    ]);
    expect(changes()).toEqual(['m_gate_changes_total{kind="resource",gate="smtp",change="opened"} 1']);
  });

  it('counts all keys of a parent as one gate', () => {
    const { changes, to } = observers();
    for (const host of ['a.example', 'b.example']) {
      reportGate(to, { kind: 'resource', name: `webhook/${host}` }, opened);
    }
    expect(changes()).toEqual(['m_gate_changes_total{kind="resource",gate="webhook/*",change="opened"} 2']);
  });

  it('logs as a warning only what a person should look at', () => {
    const { log, to } = observers();
    for (const change of ['opened', 'recovering', 'closed', 'held', 'worker-suspect', 'dormant', 'pinned'] as const) {
      reportGate(to, smtp, { ...opened, change });
    }
    reportGate(to, { kind: 'resource', name: 'webhook/a.example' }, opened);
    reportGate(to, { kind: 'parent', name: 'webhook' }, opened);
    expect(log.map(({ level }) => level)).toEqual([
      ...['warn', 'info', 'info', 'info', 'warn', 'warn', 'info'],
      ...['info', 'warn'],
    ]);
  });
});

describe('the line about a change', () => {
  const opening = pin(closedGate(NOW), 'open', 'ana', NOW, () => 0.5);
  const open = unpin(opening.state, 'ana', NOW).state;

  it('says when the next probe starts', () => {
    const after = { state: { ...open, probes: { ...open.probes, at: NOW + 1_550 } }, now: NOW };
    expect(eventLine(smtp, opened, after)).toMatch(/\(rule fast\); next probe in 1\.6s$/);
    expect(eventLine(smtp, opened, { state: open, now: NOW })).toMatch(/; next probe now$/);
  });

  it.each<[Partial<GateEvent>, string]>([
    [
      { rule: 'ratio' },
      'gate smtp opened: 12 of the last 15 runs failed; within 30s failures of at least 9 jobs and 2 workers (rule ratio)',
    ],
    [
      { rule: 'lone', figures: { ...figures, streak: 4, distinctJobs: 1, failingWorkers: 1 } },
      'gate smtp opened: streak of 4 failures and no sign of life; within 30s failures of at least 1 job and 1 worker (rule lone)',
    ],
    [
      // A streak may have pauses that are longer than the window.
      { rule: 'slow', figures: { ...figures, streak: 5, distinctJobs: 0, failingWorkers: 0 } },
      'gate smtp opened: streak of 5 failures in slow traffic (rule slow)',
    ],
    [
      { rule: 'ramp failed: streak', from: 'ramp', figures: { ...figures, limit: 12.345 } },
      'gate smtp opened: it failed again at 12.3 jobs/s: streak of 12 failures; within 30s failures of at least 9 jobs and 2 workers (rule ramp failed: streak)',
    ],
    [
      { change: 'held', rule: 'retry-after', figures: { ...figures, heldUntil: NOW + 60_000 } },
      'gate smtp began to hold all its jobs: it asked to be left alone until 2026-01-01T00:01:00.000Z (rule retry-after)',
    ],
    [{ change: 'pinned', rule: 'operator', who: 'ana' }, 'gate smtp was pinned open: by ana'],
    [{ rule: 'of a later version' }, 'gate smtp opened: of a later version (rule of a later version)'],
  ])('%o', (event, expected) => {
    expect(eventLine(smtp, { ...opened, ...event })).toBe(expected);
  });

  it.each<[Partial<GateEvent>, string]>([
    [{ rule: 'fast' }, 'failures in a row (fast)'],
    [{ rule: 'children 8 of 24' }, 'most keys fail at once (children 8 of 24)'],
    [{ change: 'pinned', rule: 'operator', who: 'ana' }, 'pinned by ana'],
    [{ rule: 'one worker alone fails', who: 'web-2' }, 'one worker alone fails: web-2'],
    [{ rule: 'of a later version' }, 'of a later version'],
  ])('%o has short words for a table', (event, expected) => {
    expect(shortReason({ ...opened, ...event })).toBe(expected);
  });

  it('has one job a second in the singular', () => {
    expect([1, 1.004, 0.5, 12.345].map(rateWords)).toEqual(['1 job/s', '1 job/s', '0.5 jobs/s', '12.3 jobs/s']);
  });

  it('names soft gates as what they are', () => {
    expect(eventLine({ kind: 'job', name: 'mail' }, opened)).toMatch(
      /^soft gate of job mail saw an outage begin: streak/,
    );
    const children = { ...opened, rule: 'children 8 of 24' };
    expect(eventLine({ kind: 'parent', name: 'webhook' }, children, { state: open, now: NOW })).toBe(
      'soft gate of all webhook/... saw an outage begin: 8 of 24 keys opened within a minute (rule children 8 of 24)',
    );
  });
});
