import { describe, expect } from 'vitest';
import { type Cli, it } from './support/cli.ts';

const seconds = (...values: number[]): number[] => values.map((value) => value * 1_000);
const minutes = (...values: number[]): number[] => values.map((value) => value * 60_000);

interface Preview {
  readonly delaysMs: number[];
  readonly rangesMs: [number, number][];
  readonly sampleMs: number[];
  readonly [field: string]: unknown;
}

const preview = (cli: Cli, ...args: string[]): Promise<Preview> => cli.json('policy', 'preview', ...args);

describe.concurrent('mulligan policy', () => {
  it.for<[string, number[]]>([
    ['--preset standard --attempts 7', [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000]],
    ['--attempts 7', [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000]],
    ['--preset standard', [500, 1_000, 2_000]],
    ['--preset financial', seconds(1, 2, 4, 8, 16)],
    ['--preset lowLatency', [100, 200]],
    ['--preset oneShot', []],
    ['--preset requeue', seconds(1, 4, 16, 64)],
    ['--preset harbor', [200, 400, 800, 1_600, 3_200, ...Array<number>(19).fill(5_000)]],
    ['--preset chronos', minutes(1, 2, 4)],
    ['--preset chronos --backoff linear --attempts 5', minutes(1, 2, 3, 4, 5)],
    ['--preset chronos --backoff fixed --attempts 5', minutes(1, 1, 1, 1, 1)],
    ['--preset chronos --backoff fibonacci --attempts 5', minutes(1, 1, 2, 3, 5)],
    ['--preset sweep', seconds(10, 10)],
    ['--preset sweep --backoff exponential', seconds(10, 20)],
    [
      '--preset patient',
      seconds(30, 60, 120, 240, 480, 960, 1_920, 3_840, 7_680, 15_360, ...Array<number>(9).fill(25_200)),
    ],
    ['--base 1s --factor 3 --max 20s --attempts 4', seconds(1, 3, 9, 20)],
    ['--delays 1s,5s,1m --attempts 4', seconds(1, 5, 60, 60)],
    ['--max-attempts 3', [500, 1_000]],
  ])('preview %s --jitter none', async ([flags, delaysMs], { cli }) => {
    const answer = await preview(cli, ...flags.split(' '), '--jitter', 'none');
    expect(answer).toMatchObject({
      delaysMs,
      sampleMs: delaysMs,
      rangesMs: delaysMs.map((ms) => [ms, ms]),
      totalMs: delaysMs.reduce((sum, ms) => sum + ms, 0),
      policy: { jitter: 'none' },
    });
  });

  it('preview shows delays before jitter, the range jitter gives them, and a sample that a seed repeats', async ({
    cli,
  }) => {
    const [one, same, other] = await Promise.all([
      preview(cli, '--seed', '7'),
      preview(cli, '--seed', '7'),
      preview(cli, '--seed', '8'),
    ]);
    expect(one).toEqual(same);
    expect(one).toMatchObject({
      delaysMs: [500, 1_000, 2_000],
      rangesMs: [
        [0, 500],
        [0, 1_000],
        [0, 2_000],
      ],
      seed: 7,
    });
    expect(other.sampleMs).not.toEqual(one.sampleMs);
    for (const [index, ms] of one.sampleMs.entries()) expect(ms).toBeLessThanOrEqual(one.delaysMs[index] as number);
    const unseeded = await preview(cli, '--attempts', '9');
    expect(await preview(cli, '--attempts', '9', '--seed', String(unseeded.seed))).toEqual(unseeded);
  });

  it('preview prints a table and a plot', async ({ cli }) => {
    const { code, stdout } = await cli.run(['policy', 'preview', '--preset', 'requeue', '--attempts', '5']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^requeue: 5 attempts; exponential: 1s, times 4 each time; jitter none\n/);
    expect(stdout).toMatch(/^ +1 +1s +1s +█\n +2 +4s +5s +█\n +3 +16s +21s +█+\n/m);
    expect(stdout).toMatch(/gives up after attempt 5/);
  });

  it('explain says what a policy will do, in words', async ({ cli }) => {
    const { stdout } = await cli.run(['policy', 'explain', '--preset', 'financial', '--deadline', '10s']);
    expect(stdout).toContain('tried up to 6 times, the first attempt and 5 retries');
    expect(stdout).toContain('1s, 2s, 4s, 8s, 16s');
    expect(stdout).toContain(
      'add up to 31s before jitter; with it, from 4.4s to 26.5s for 98 of 100 jobs, and anything from 0ms to 31s at worst',
    );
    expect(stdout).toContain('when attempt 6 fails: dead, exhausted');
    expect(stdout).toContain(
      'more than 10s after the first: dead, deadline. Before jitter that is after attempt 4 already.',
    );
    const json = await cli.json<Record<string, unknown>>('policy', 'explain', '--preset', 'oneShot');
    expect(json).toMatchObject({
      preset: 'oneShot',
      delaysMs: [],
      text: expect.stringContaining('tried once and never retried'),
    });
  });

  it('list shows every preset', async ({ cli }) => {
    const { presets } = await cli.json<{ presets: { preset: string; delaysMs: number[] }[] }>('policy', 'list');
    expect(presets.map(({ preset }) => preset)).toEqual([
      'standard',
      'financial',
      'lowLatency',
      'oneShot',
      'requeue',
      'harbor',
      'chronos',
      'sweep',
      'patient',
    ]);
    const { stdout } = await cli.run(['policy', 'list']);
    for (const { preset } of presets) expect(stdout).toMatch(new RegExp(`^${preset} `, 'm'));
  });

  it.for<[string, RegExp]>([
    ['--preset standrd', /--preset: .* Did you mean standard\?/],
    ['--backoff linear --factor 2', /--factor: a linear backoff has none/],
    ['--backoff table', /--delays: expected the delays of the table/],
    ['--delays 1s,soon', /--delays: expected a duration/],
    ['--base 5m', /--max: expected at least the base, 5m, got "30s"/],
    ['--factor 0.5', /--factor: expected a number of at least 1/],
    ['--jitter ful', /--jitter: .* Did you mean full\?/],
    ['--jitter spread', /Write spread:0\.2/],
    ['--jitter spread:3', /--jitter spread: expected a number from 0 to 1, got 3/],
    ['--max-attempts 0', /--max-attempts: expected a whole number of at least 1, got 0/],
    ['--attempts 0', /--attempts: expected a whole number from 1 to 1000/],
    ['--seed x', /--seed: expected a whole number/],
    ['--deadline 0s', /--deadline: expected a duration above 0/],
  ])('preview refuses %s', async ([flags, complaint], { cli }) => {
    const { code, stdout, stderr } = await cli.run(['policy', 'preview', ...flags.split(' ')]);
    expect(stderr).toMatch(complaint);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });
});
