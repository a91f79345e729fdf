import { describe, expect, it } from 'vitest';
import { ConfigError } from './errors.ts';
import { type EndedRun, foldRuns } from './gate/index.ts';
import { Mulligan } from './mulligan.ts';
import type { EventMap } from './observe/events.ts';
import type { LogEntry } from './observe/log.ts';
import { operatorName } from './operator.ts';
import type { Outcome } from './retry/outcome.ts';
import { enqueueOne } from './store/conformance/builders.ts';
import { MemoryStore } from './store/memory/store.ts';
import type { GateRef } from './store/store.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

const smtp: GateRef = { kind: 'resource', name: 'smtp' };

const refused: Outcome = {
  kind: 'failed',
  failure: {
    error: { name: 'Error', message: 'connection refused', code: 'ECONNREFUSED', status: null, stack: null },
    ...{ class: 'environment', rule: 'code:ECONNREFUSED', retryAfterMs: null, customDelayMs: null, note: null },
  },
};

/** A queue without workers, and what it tells. */
async function operated() {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const log: LogEntry[] = [];
  const mulligan = await Mulligan.open(store, { clock, log: (entry) => log.push(entry) });
  const events: EventMap['gate'][] = [];
  mulligan.on('gate', (event) => events.push(event));
  /** Runs of this many jobs end alike. */
  const report = async (gate: GateRef, outcome: Outcome, runs: number, worker = 'w1'): Promise<void> => {
    const common = { outcome, epoch: 0, claimedAt: clock.now(), durationMs: 5, isFirstAttempt: true, isRetry: false };
    const ended: EndedRun[] = Array.from({ length: runs }, (_, n) => ({ jobId: `${worker}-job-${n}`, ...common }));
    await store.report(foldRuns(worker, ended, 100).map((folded) => ({ gate, report: folded })));
  };
  return {
    clock,
    store,
    mulligan,
    gates: mulligan.gates,
    log,
    events,
    report,
    [Symbol.asyncDispose]: () => mulligan.close(),
  };
}

describe('gates.show', () => {
  it('says that a gate it has not heard of is closed', async () => {
    await using queue = await operated();
    const { gate, isKnown, explanation, history } = await queue.gates.show('smtp');
    expect(gate).toMatchObject({
      name: 'smtp',
      kind: 'resource',
      phase: 'closed',
      pin: null,
      heardAt: null,
      since: null,
    });
    expect(gate.nextAt).toBe(gate.at);
    expect({ isKnown, history }).toEqual({ isKnown: false, history: [] });
    expect(explanation).toEqual([
      'It is closed: every due job starts. It has not been heard of lately: it is healthy, unused or misspelt.',
    ]);
  });

  it('explains why a gate opened, by the figures of that moment, and what happens next', async () => {
    await using queue = await operated();
    await enqueueOne(queue.store, { resource: 'smtp' });
    await queue.report(smtp, refused, 6, 'w1');
    await queue.report(smtp, refused, 6, 'w2');
    await queue.clock.advance(500);
    const { gate, isKnown, explanation, history } = await queue.gates.show('smtp');
    expect(gate).toMatchObject({
      ...{ phase: 'open', pin: null, waiting: 1, heldUntil: null, rate: { limit: null, peak: 0 } },
      ...{ suspectWorkers: 0, isDormant: false, budget: { tokens: 10, cap: 10 } },
      reason: { change: 'opened', rule: 'fast', who: null },
      figures: { alive: 0, environment: 12, streak: 12, failingWorkers: 2, workers: 2 },
    });
    expect(gate.nextAt).toBeGreaterThan(gate.at);
    expect(gate.since).toBe(gate.at - 500);
    expect(isKnown).toBe(true);
    expect(history).toMatchObject([{ change: 'opened', rule: 'fast', figures: { streak: 12 } }]);
    expect(explanation).toEqual([
      'It is open: only probes start, one at a time. 1 job waits behind it.',
      expect.stringMatching(
        /^Just now it opened: streak of 12 failures; within 30s failures of at least \d+ jobs and 2 workers \(rule fast\)\.$/,
      ),
      expect.stringMatching(/^The next probe may start in [\d.]+m?s\. Three answers in a row/),
    ]);
  });

  it('does not promise a probe where no job is due', async () => {
    await using queue = await operated();
    await queue.report(smtp, refused, 6, 'w1');
    await queue.report(smtp, refused, 6, 'w2');
    await queue.clock.advance(60_000);
    const probe = async (): Promise<string | undefined> => (await queue.gates.show('smtp')).explanation.at(-1);
    expect(await probe()).toMatch(
      /^No job waits that could be its probe: the next one that is enqueued will be\. Three/,
    );
    await enqueueOne(queue.store, { resource: 'smtp', delayMs: 7_200_000 });
    expect(await probe()).toMatch(/^The next probe may start in 2h\. Three/);
    await enqueueOne(queue.store, { resource: 'smtp' });
    expect(await probe()).toMatch(/^The next probe may start now\. Three/);
  });

  it('finds the soft gate of a job when no resource has that name', async () => {
    await using queue = await operated();
    await queue.report({ kind: 'job', name: 'mail' }, refused, 12);
    const { gate, explanation } = await queue.gates.show('mail');
    expect(gate).toMatchObject({ kind: 'job', phase: 'open', waiting: null });
    expect(explanation[0]).toMatch(/^It is a soft gate: it holds nothing back\. It sees an outage/);
    expect((await queue.gates.show('mail', { kind: 'resource' })).isKnown).toBe(false);
  });

  it('says when most keys of the parent fail at once', async () => {
    await using queue = await operated();
    for (let n = 0; n < 20; n++) await queue.report({ kind: 'resource', name: `webhook/${n}.example` }, refused, 12);
    await queue.clock.advance(2_000);
    // The parent counts its keys with a report; the next one finds that it sees an outage.
    for (let n = 0; n < 2; n++) await queue.report({ kind: 'resource', name: 'webhook/a.example' }, refused, 1);
    const { gate, explanation } = await queue.gates.show('webhook/a.example');
    expect(gate).toMatchObject({ phase: 'open', reason: { rule: 'parent down' } });
    expect(explanation.at(-1)).toBe('Most keys of its parent webhook fail at once: look at your own network.');
  });
});

describe('gates.list', () => {
  it('lists gates that are not closed first, with the reason of each', async () => {
    await using queue = await operated();
    await queue.report({ kind: 'resource', name: 'healthy' }, { kind: 'completed' }, 1);
    await queue.report(smtp, refused, 12);
    await queue.gates.open('bank', { by: 'ana' });
    const list = await queue.gates.list();
    expect(list.map(({ name, phase, pin, reason }) => [name, phase, pin, reason?.rule])).toEqual([
      ['smtp', 'open', null, 'fast'],
      ['bank', 'open', 'open', 'operator'],
      ['healthy', 'closed', null, undefined],
    ]);
    expect(await queue.gates.list({ limit: 1 })).toHaveLength(1);
    expect(await queue.gates.list({ kind: 'job' })).toEqual([]);
  });
});

describe('orders by hand', () => {
  it('open and close pin a gate until unpin gives it back to its rules', async () => {
    await using queue = await operated();
    expect(await queue.gates.open('smtp', { by: 'ana' })).toMatchObject({ phase: 'open', pin: 'open', nextAt: null });
    expect((await queue.gates.show('smtp')).explanation).toEqual([
      'It is pinned open: nothing starts, not even probes. 0 jobs wait behind it.',
      'Just now it was pinned open: by ana.',
      'It stays so until it is unpinned.',
    ]);
    expect(await queue.gates.close('smtp', { by: 'bob' })).toMatchObject({
      ...{ phase: 'closed', pin: 'closed', reason: { change: 'pinned', who: 'bob' } },
    });
    expect(await queue.gates.unpin('smtp', { by: 'ana' })).toMatchObject({ phase: 'closed', pin: null });
    const { history } = await queue.gates.show('smtp');
    expect(history.map(({ change, to, who }) => [change, to, who])).toEqual([
      ['unpinned', 'closed', 'ana'],
      ['pinned', 'closed', 'bob'],
      ['pinned', 'open', 'ana'],
    ]);
  });

  it('are the reason shown, though rules changed the gate before and after', async () => {
    await using queue = await operated();
    await queue.report(smtp, refused, 12);
    expect((await queue.gates.show('smtp')).gate.downSince).not.toBeNull();
    expect(await queue.gates.close('smtp', { by: 'bob' })).toMatchObject({ downSince: null });
    await queue.gates.unpin('smtp', { by: 'ana' });
    const { explanation } = await queue.gates.show('smtp');
    expect(explanation.slice(0, 2)).toEqual([
      'It is closed: every due job starts.',
      'Just now it was given back to its rules: by ana.',
    ]);
  });

  it('each is an event, a log line and a count', async () => {
    await using queue = await operated();
    await queue.gates.open('smtp', { by: 'ana' });
    expect(queue.events).toMatchObject([
      { gate: smtp, change: 'pinned', from: 'closed', to: 'open', rule: 'operator', who: 'ana' },
    ]);
    expect(queue.log).toMatchObject([{ level: 'info', message: 'gate smtp was pinned open: by ana' }]);
    expect(await queue.mulligan.metrics()).toContain(
      'mulligan_gate_changes_total{kind="resource",gate="smtp",change="pinned"} 1',
    );
  });

  it('unpin of a gate that is not pinned changes nothing and tells nothing', async () => {
    await using queue = await operated();
    expect(await queue.gates.unpin('smtp')).toMatchObject({ phase: 'closed', pin: null });
    expect(queue.events).toEqual([]);
  });

  it('open, close and unpin refuse a parent and a soft gate of a job, and write nothing', async () => {
    await using queue = await operated();
    await queue.report({ kind: 'resource', name: 'webhook/a.example' }, refused, 1);
    await queue.report({ kind: 'job', name: 'ping' }, refused, 1);
    const before = await queue.gates.list();
    for (const order of ['open', 'close', 'unpin'] as const) {
      await expect(queue.gates[order]('webhook')).rejects.toThrow(
        `gates.${order}: webhook is the parent of webhook/KEY and holds no jobs. Pin the gates of its keys.`,
      );
      await expect(queue.gates[order]('ping')).rejects.toThrow(`gates.${order}: ping is the soft gate of a job`);
    }
    expect(await queue.gates.list()).toEqual(before);
    expect(queue.events).toEqual([]);
    // A resource of the same name has a gate of its own.
    await queue.report({ kind: 'resource', name: 'ping' }, refused, 1);
    expect(await queue.gates.open('ping')).toMatchObject({ kind: 'resource', pin: 'open' });
  });

  it('reset closes a gate, whatever it saw, and also a soft one', async () => {
    await using queue = await operated();
    await queue.report(smtp, refused, 12);
    await queue.report({ kind: 'job', name: 'mail' }, refused, 12);
    expect(await queue.gates.reset('smtp')).toMatchObject({
      kind: 'resource',
      phase: 'closed',
      figures: { streak: 0 },
    });
    expect(await queue.gates.reset('mail')).toMatchObject({ kind: 'job', phase: 'closed' });
  });

  it('are signed with the name of the user when no operator is named', async () => {
    await using queue = await operated();
    await queue.gates.open('smtp');
    expect(queue.events[0]?.who).toBe(operatorName());
  });
});

describe('what gates cannot be asked', () => {
  it.each<[string, (mulligan: Mulligan) => Promise<unknown>, string]>([
    ['an empty name', ({ gates }) => gates.show(''), "gates.show: expected the name of a gate, such as 'smtp'"],
    [
      'a name with a control character',
      ({ gates }) => gates.open('a\u0000'),
      'gates.open: expected the name of a gate',
    ],
    ['no name', ({ gates }) => gates.reset(undefined as never), 'gates.reset: expected the name of a gate'],
    [
      'a limit of 0',
      ({ gates }) => gates.list({ limit: 0 }),
      'gates.list: limit: expected a whole number from 1 to 1000',
    ],
    ['a kind there is not', ({ gates }) => gates.list({ kind: 'jobs' as never }), 'Did you mean job?'],
    [
      'a misspelt option',
      ({ gates }) => gates.open('a', { bye: 'x' } as never),
      'gates.open: there is no option "bye"',
    ],
    ['an operator without a name', ({ gates }) => gates.close('a', { by: '' }), 'gates.close: by: expected a text'],
    ['to pin a soft gate', ({ gates }) => gates.open('a', { kind: 'job' } as never), 'there is no option "kind"'],
  ])('%s', async (_, ask, message) => {
    await using queue = await operated();
    await expect(ask(queue.mulligan)).rejects.toThrow(ConfigError);
    await expect(ask(queue.mulligan)).rejects.toThrow(message);
    expect(await queue.gates.list()).toEqual([]);
  });
});
