import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { systemClock } from '../src/clock.ts';
import { type EndedRun, foldRuns } from '../src/gate/index.ts';
import type { GateDetails, GateInfo, Job } from '../src/index.ts';
import { Mulligan } from '../src/mulligan.ts';
import type { Outcome } from '../src/retry/outcome.ts';
import { openStore } from '../src/store/open.ts';
import type { GateRef } from '../src/store/store.ts';
import { type Cli, it } from './support/cli.ts';

const library = new URL('../src/index.ts', import.meta.url).href;

const refused: Outcome = {
  kind: 'failed',
  failure: {
    error: { name: 'Error', message: 'connection refused', code: 'ECONNREFUSED', status: null, stack: null },
    ...{ class: 'environment', rule: 'code:ECONNREFUSED', retryAfterMs: null, customDelayMs: null, note: null },
  },
};

/** Makes the default database of a command line, with a job behind `smtp`; two workers report that these gates are down. */
async function outage(cli: Cli, down: readonly GateRef[] = [{ kind: 'resource', name: 'smtp' }]): Promise<string> {
  const store = await openStore(`sqlite:${join(cli.folder, 'mulligan.db')}`, systemClock);
  const mulligan = await Mulligan.open(store, { queues: { mail: { resource: 'smtp' } }, log: () => {} });
  const { id } = await mulligan.enqueue('mail.send', 1, { queue: 'mail' });
  for (const worker of ['w1', 'w2']) {
    const run = { outcome: refused, epoch: 0, claimedAt: systemClock.now(), durationMs: 5 };
    const runs: EndedRun[] = Array.from({ length: 7 }, (_, n) => ({
      ...{ ...run, jobId: `${worker}-${n}`, isFirstAttempt: true, isRetry: false },
    }));
    const [report] = foldRuns(worker, runs, 100);
    await store.report(down.map((gate) => ({ gate, report: report ?? null })));
  }
  await mulligan.close();
  return id;
}

describe.concurrent('mulligan gates', () => {
  it('list shows those that are not closed, and why', async ({ cli }) => {
    await outage(cli);
    const { code, stdout } = await cli.run(['gates', 'list']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^smtp +resource +open +\S+ ?\S* +.* 1 +- +failures in a row \(fast\)$/m);
    const { gates } = await cli.json<{ gates: GateInfo[] }>('gates', 'list');
    expect(gates).toMatchObject([{ name: 'smtp', phase: 'open', waiting: 1, reason: { rule: 'fast' } }]);
    expect(await cli.run(['gates', 'list', '--kind', 'job'])).toMatchObject({
      ...{ code: 0, stdout: 'No gate was heard of lately: all are closed.\n', stderr: '' },
    });
  });

  it('show explains why a gate opened, what happens next and what its reader can do', async ({ cli }) => {
    await outage(cli);
    const { code, stdout } = await cli.run(['gates', 'show', 'smtp']);
    expect(code).toBe(0);
    expect(stdout).toContain('It is open: only probes start, one at a time. 1 job waits behind it.');
    expect(stdout).toMatch(
      /it opened: streak of 14 failures; within 30s failures of at least \d+ jobs and 2 workers \(rule fast\)\./,
    );
    expect(stdout).toMatch(/^The next probe may start /m);
    expect(stdout).toMatch(/^.* opened +closed -> open +streak of 14 failures.* 14 failed, 0 answered, streak 14/m);
    const [, fact] = /^next start +(.*)$/m.exec(stdout) ?? [];
    expect(stdout).toContain(`The next probe may start ${fact}.`);
    const advice = [...stdout.matchAll(/^mulligan gates (\w+) smtp /gm)].map(([, order]) => order);
    expect(advice).toEqual(['reset', 'open', 'close']);
    expect(stdout).toMatch(/^mulligan gates close smtp +let everything start until unpin: .*jobs may die/m);
    const shown = await cli.json<GateDetails>('gates', 'show', 'smtp');
    expect(shown).toMatchObject({ isKnown: true, gate: { phase: 'open' }, history: [{ change: 'opened' }] });
    const misspelt = await cli.run(['gates', 'show', 'smpt']);
    expect(misspelt.code).toBe(1);
    expect(misspelt.stderr).toContain('there is no gate, resource or job smpt. Did you mean smtp?');
  });

  it('show quotes a name that a stranger chose, wherever it may be pasted or printed', async ({ cli }) => {
    const name = "webhook/a';$(reboot)\u202e";
    await outage(cli, [{ kind: 'resource', name }]);
    const { stdout } = await cli.run(['gates', 'show', name]);
    expect(stdout).toContain("mulligan gates close 'webhook/a'\\'';$(reboot)");
    expect(stdout).not.toContain('\u202e');
  });

  it('open, close, unpin and reset say what they did, and are in the history with their operator', async ({ cli }) => {
    await outage(cli);
    const call = async (order: string): Promise<string> => {
      const { code, stdout, stderr } = await cli.run(['gates', order, 'smtp', '--by', 'ana']);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return stdout;
    };
    expect(await call('open')).toBe(
      'Gate smtp is pinned open: nothing starts, not even probes, until mulligan gates unpin smtp.\n',
    );
    expect(await call('unpin')).toBe(
      'Gate smtp follows its rules again; it is open now: probes come first, then a rising rate. If you know that it is well, mulligan gates reset smtp closes it at once.\n',
    );
    expect(await call('close')).toBe(
      'Gate smtp is pinned closed: everything starts, failures count and jobs may die, until mulligan gates unpin smtp.\n',
    );
    expect(await call('unpin')).toBe('Gate smtp follows its rules again; it is closed now.\n');
    expect(await call('reset')).toBe('Gate smtp is closed and has forgotten what it saw.\n');
    const { history } = await cli.json<GateDetails>('gates', 'show', 'smtp');
    expect(history.filter(({ who }) => who === 'ana').map(({ change, to }) => `${change} ${to}`)).toEqual([
      ...['reset closed', 'unpinned closed', 'pinned closed', 'unpinned open', 'pinned open'],
    ]);
  });

  it('hold jobs that were enqueued with their definition, not those enqueued by name alone', async ({ cli }) => {
    writeFileSync(
      join(cli.folder, 'jobs.ts'),
      `import { defineJob } from ${JSON.stringify(library)};
       export default [defineJob({ name: 'a', resource: 'smtp', run() {} }),
         defineJob<string>({ name: 'b', resource: (host) => ['webhook', host], run() {} })];`,
    );
    const resourceOf = async (...args: string[]): Promise<string | null> => {
      const { id } = await cli.json<{ id: string }>('enqueue', ...args);
      return (await cli.json<{ job: Job }>('jobs', 'show', id)).job.resource;
    };
    expect(await resourceOf('a', '1', '--jobs', 'jobs.ts')).toBe('smtp');
    expect(await resourceOf('b', '"example.com"', '--jobs', 'jobs.ts')).toBe('webhook/example.com');
    expect(await resourceOf('a', '1')).toBe(null);
    // Only that job tells of the parent, so the key may still be misspelt.
    expect(await cli.run(['gates', 'open', 'webhook/example.org'])).toMatchObject({
      ...{
        code: 0,
        stderr: expect.stringContaining('keys of webhook that are well are not stored: check the spelling'),
      },
    });
  });

  it('open and close refuse a resource that no gate and no job has, unless they are forced', async ({ cli }) => {
    await outage(cli);
    const refused = { code: 1, stdout: '' };
    expect(await cli.run(['gates', 'open', 'smpt'])).toEqual({
      ...refused,
      stderr: 'mulligan: there is no resource smpt. Did you mean smtp? --force pins its gate before its first job.\n',
    });
    expect(await cli.run(['gates', 'close', 'nosuch'])).toEqual({
      ...refused,
      stderr:
        'mulligan: there is no resource nosuch. mulligan gates list names those with a gate. --force pins its gate before its first job.\n',
    });
    const { stderr } = await cli.run(['gates', 'open', 'mail.send']);
    expect(stderr).toContain(
      'there is no resource mail.send. It is a job name, and the soft gate of a job holds no jobs.',
    );
    const { gates } = await cli.json<{ gates: GateInfo[] }>('gates', 'list');
    expect(gates.map(({ name }) => name)).toEqual(['smtp']);
    const forced = await cli.run(['gates', 'open', 'smpt', '--force']);
    expect(forced).toMatchObject({ code: 0, stderr: '' });
    expect(await cli.json('gates', 'unpin', 'smpt')).toMatchObject({ gate: { name: 'smpt', pin: null } });
    expect((await cli.run(['gates', 'unpin', 'smtq'])).stderr).toBe(
      'Gate smtq was not heard of before: check the spelling.\n',
    );
  });

  it('open pins a healthy gate that has no row when a job has its resource', async ({ cli }) => {
    await outage(cli, []);
    expect((await cli.json<{ gates: GateInfo[] }>('gates', 'list')).gates).toEqual([]);
    expect(await cli.run(['gates', 'open', 'smtp'])).toMatchObject({ code: 0, stderr: '' });
  });

  it('show and open know that keys that are well are not stored', async ({ cli }) => {
    await outage(cli, [{ kind: 'resource', name: 'webhook/a.example' }]);
    const { stdout } = await cli.run(['gates', 'show', 'webhook/b.example']);
    expect(stdout).toContain('keys of webhook that are well are not stored.');
    const { code, stderr } = await cli.run(['gates', 'open', 'webhook/b.example']);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr:
        'Gate webhook/b.example had no row, as keys of webhook that are well are not stored: check the spelling.\n',
    });
  });

  it('show takes a job name without a gate of that resource for the soft gate of that job', async ({ cli }) => {
    await outage(cli);
    const { code, stdout } = await cli.run(['gates', 'show', 'mail.send']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^kind +job\nstate +closed$/m);
    expect(stdout).toContain('It is the soft gate of the job mail.send: it holds nothing back.');
    expect(stdout).toContain('so it is healthy and sees no outage.');
    expect(stdout).not.toMatch(/misspelt|gates open/);
    expect(await cli.json('gates', 'show', 'mail.send')).toMatchObject({ gate: { kind: 'job' }, isKnown: false });
    expect(await cli.run(['gates', 'show', 'mail.sent'])).toMatchObject({
      code: 1,
      stderr: 'mulligan: there is no gate, resource or job mail.sent. Did you mean mail.send?\n',
    });
    const nope = await cli.run(['gates', 'show', 'nope', '--json']);
    expect(JSON.parse(nope.stderr || nope.stdout)).toMatchObject({ error: { code: 'NOT_FOUND' } });
    const resource = await cli.json('gates', 'show', 'mail.send', '--kind', 'resource');
    expect(resource).toMatchObject({ gate: { kind: 'resource' } });
    await cli.json('gates', 'reset', 'mail.send', '--kind', 'resource');
    expect(await cli.json('gates', 'show', 'mail.send')).toMatchObject({ gate: { kind: 'resource' } });
  });

  it('open refuses the soft gate of a job in one line', async ({ cli }) => {
    await outage(cli, [{ kind: 'job', name: 'ping' }]);
    const { code, stdout, stderr } = await cli.run(['gates', 'open', 'ping']);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^.*ping is the soft gate of a job and holds no jobs\. Give the definition a resource.*\n$/);
  });

  it('jobs show, jobs list and stats name a gate that is not closed', async ({ cli }) => {
    const id = await outage(cli, [
      { kind: 'resource', name: 'smtp' },
      { kind: 'job', name: 'sms.send' },
    ]);
    const job = await cli.run(['jobs', 'show', id]);
    expect(job.stdout).toMatch(/^gate +open, next start .* \(mulligan gates show smtp\)$/m);
    expect(await cli.json('jobs', 'show', id)).toMatchObject({ job: { id }, gate: { name: 'smtp', phase: 'open' } });
    const jobs = await cli.run(['jobs', 'list']);
    expect(jobs.stdout).toMatch(new RegExp(`^${id} .* ready, gate open `, 'm'));
    const stats = await cli.run(['stats']);
    expect(stats.stdout).toMatch(/^Gates to look at: .*smtp \(open\).* See mulligan gates list\.$/m);
    expect(stats.stdout).toContain('sms.send (outage)');
  });
});
