import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { SimulationResult } from '../src/simulate/index.ts';
import { inProcess, type Printed } from './fuzz/terminal.ts';
import { it } from './support/cli.ts';

const scenario = {
  name: 'tiny',
  description: 'A minute.',
  duration: '40s',
  drain: '60s',
  arrivals: { kind: 'constant', rate: 5 },
  dependency: { serviceTime: { kind: 'fixed', mean: '50ms' }, outages: [{ from: '10s', until: '30s' }] },
};

const shortest = { ...scenario, duration: '2s', drain: 0, dependency: { ...scenario.dependency, outages: [] } };

/** Without a process of its own, which takes a second to start. */
function simulated(...flags: readonly string[]): Promise<Printed> {
  return inProcess(['simulate', ...flags], {});
}

describe('mulligan simulate', () => {
  it('puts policies side by side, and draws them', async ({ cli }) => {
    const [tiny, mine] = [join(cli.folder, 'tiny.json'), join(cli.folder, 'mine.json')];
    // A byte order mark, as editors on Windows write it.
    writeFileSync(tiny, `\ufeff${JSON.stringify(scenario)}`);
    writeFileSync(mine, JSON.stringify({ name: 'mine', gate: 'none', retry: { maxAttempts: 2 } }));
    const args = ['--scenario', tiny, '--compare', `standard,${mine}`, '--seed', '3'];
    const { code, stdout, stderr } = await cli.run(['simulate', ...args, '--svg', 'tiny.svg']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^tiny, seed 3\nA minute\.\n\n {2,}standard +mine\n/);
    expect(stdout).toMatch(/^dead +0 +([1-9]\d+)\n {2}exhausted +0 +\1\nleft at the end/m);
    expect(stdout).toMatch(/^ {2}gate {5}·+O+\/+$/m);
    expect(readFileSync(join(cli.folder, 'tiny.svg'), 'utf8')).toMatch(/^<svg .*standard, mine/);
    const again = JSON.parse((await simulated(...args, '--json')).stdout) as SimulationResult;
    expect(again.runs.map(({ policy }) => policy.name)).toEqual(['standard', 'mine']);
    expect(stdout).toContain(` ${again.runs[0]?.figures.calls} `);
  });

  it('prints the figures also when the picture cannot be written', async ({ cli }) => {
    const file = join(cli.folder, 'tiny.json');
    writeFileSync(file, JSON.stringify(shortest));
    const { code, stdout, stderr } = await simulated('--scenario', file, '--svg', '/dev/full');
    expect(stdout).toMatch(/^jobs arrived +\d/m);
    expect(stdout).not.toContain('exhausted');
    expect(stderr).toContain('--svg: /dev/full could not be written (ENOSPC');
    expect(code).toBe(1);
  });

  it.for<[string, string]>([
    [
      '--scenario outage-10',
      '--scenario: expected one of outage-10m, brownout, rate-limit, poison, thundering-herd, flapping, bad-deploy, or a JSON file, got outage-10. Did you mean outage-10m?',
    ],
    [
      '--scenario @none.json',
      '--scenario: expected a file that can be read, got @none.json (ENOENT: no such file or directory',
    ],
    ['--scenario @text.json', '--scenario: expected JSON in @text.json, but '],
    ['--scenario @empty.json', '@empty.json: expected the field duration, got an empty object.'],
    ['--compare standard,no-gates', 'or a JSON file, got no-gates. Did you mean no-gate?'],
    ['--compare @empty.json', '@empty.json: expected the field name, got an empty object.'],
    ['--seed x', '--seed: expected a whole number from 0 to 4294967295, got "x".'],
    [
      '--scenario @tiny.json --svg @no/such/folder.svg',
      '--svg: expected a file that can be written, got @no/such/folder.svg (ENOENT',
    ],
  ])('refuses %s', async ([flags, message], { cli }) => {
    writeFileSync(join(cli.folder, 'text.json'), 'duration: 5m');
    writeFileSync(join(cli.folder, 'empty.json'), '{}');
    writeFileSync(join(cli.folder, 'tiny.json'), JSON.stringify(shortest));
    const there = (text: string): string => text.replaceAll('@', `${cli.folder}/`);
    const { code, stdout, stderr } = await simulated(...there(flags).split(' '));
    expect(stderr).toContain(there(message));
    expect([code, stdout]).toEqual([2, '']);
  });
});
