import { describe, expect } from 'vitest';
import { it } from './support/cli.ts';

describe.concurrent('mulligan top', () => {
  it('prints one frame and ends where there is no terminal', async ({ cli }) => {
    await cli.json('enqueue', 'email.send', '{}', '--queue', 'emails');
    const { code, stdout } = await cli.run(['top'], { env: { COLUMNS: '80' } });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^mulligan top {2}\S+Z {2}sqlite:mulligan\.db\n1 waiting, 0 running, 0 dead; /);
    expect(stdout).toMatch(/\nemails +- +1 +0 +0 +0 +- +-\n/);
    expect(stdout).not.toContain('\u001b');
    expect(await cli.json('top')).toMatchObject({ queues: [{ queue: 'emails', ready: 1 }], gates: [], workers: [] });
  });

  it('refuses an interval that it cannot keep', async ({ cli }) => {
    expect(await cli.run(['top', '--interval', '5ms'])).toMatchObject({
      code: 2,
      stderr: 'mulligan: --interval: expected at least 100ms, got 5ms.\n',
    });
  });
});
