import { execFileSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CliCommand, makeShell } from '../src/cli/command.ts';
import { allCommands, commandTree } from '../src/cli/completion/tree.ts';
import { Output } from '../src/cli/output.ts';
import { build } from '../src/cli/program.ts';
import { Mulligan } from '../src/index.ts';
import { HttpMetrics } from '../src/observe/http-metrics.ts';
import { readExposition } from './support/exposition.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const prometheus = join(root, 'ops', 'prometheus');
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}
const dashboard = JSON.parse(textOf('ops/grafana/mulligan.json')) as { uid: string; panels: readonly Panel[] };
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

/** Every name that a sample of ours can have. */
async function exportedNames(): Promise<Set<string>> {
  await using mulligan = await Mulligan.open('memory:');
  const families = readExposition((await mulligan.metrics()) + new HttpMetrics('mulligan').render());
  return new Set(
    [...families].flatMap(([name, { kind }]) =>
      kind === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

describe('the files in ops/', () => {
  it('name no metric that is not exported, and the dashboard shows all of them', async () => {
    const exported = await exportedNames();
    const files = globSync('ops/**/*.{yaml,json}', { cwd: root });
    expect(files.length).toBeGreaterThanOrEqual(4);
    for (const file of files) {
      const named = new Set([...textOf(file).matchAll(/\bmulligan_[a-z_]+\b/g)].map(([name]) => name));
      expect(
        [...named].filter((name) => !exported.has(name)),
        file,
      ).toEqual([]);
    }
    const families = new Set([...exported].map((name) => name.replace(/_(bucket|sum|count)$/, '')));
    const shown = queries.join('\n');
    expect([...families].filter((family) => !shown.includes(family))).toEqual([]);
  });

  it('name no command that does not exist', () => {
    const program = new CliCommand('mulligan');
    build(
      program,
      makeShell(new Output(false), {}, () => undefined),
    );
    const known = new Set(allCommands(commandTree(program)).map(({ path }) => path));
    const named = [...textOf('ops/prometheus/alerts.yaml').matchAll(/\bmulligan ([a-z]+ [a-z]+)/g)].map(
      ([, path]) => path,
    );
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((path) => !known.has(path as string))).toEqual([]);
  });

  it('point to sections of the runbook that exist', () => {
    const targets = [...textOf('ops/prometheus/alerts.yaml').matchAll(/runbook: (\S+)/g)].map(([, target]) => target);
    const missing = targets.filter((target) => {
      const [page, anchor] = (target as string).split('#') as [string, string | undefined];
      const anchors = [...textOf(page).matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
        (title as string)
          .toLowerCase()
          .replace(/[^\w -]/g, '')
          .replaceAll(' ', '-'),
      );
      return anchor !== undefined && !anchors.includes(anchor);
    });
    expect(missing).toEqual([]);
  });
});

describe('the dashboard', () => {
  it('has panels with ids of their own that do not cover each other', () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
    for (const { type, targets } of panels) expect((targets ?? []).length > 0).toBe(type !== 'row');
  });
});

const missing = isMissing();
if (missing) console.warn('skipped, alert rules and queries by promtool: there is no promtool in the PATH');

function isMissing(): boolean {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' });
    return false;
  } catch {
    return true;
  }
}

describe.skipIf(missing)('promtool', () => {
  it('accepts the alert rules, and they fire as their tests say', () => {
    execFileSync('promtool', ['check', 'rules', 'alerts.yaml'], { cwd: prometheus, stdio: 'pipe' });
    execFileSync('promtool', ['test', 'rules', 'alerts.test.yaml'], { cwd: prometheus, stdio: 'pipe' });
  });

  it('accepts every query of the dashboard', () => {
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-ops-'));
    try {
      const exprs = queries.map((expr) => expr.replaceAll('$__rate_interval', '5m').replaceAll('$queue', '.*'));
      const rules = exprs.map((expr, n) => ({ record: `query:n${n}`, expr }));
      // JSON is YAML.
      writeFileSync(join(folder, 'queries.yaml'), JSON.stringify({ groups: [{ name: 'queries', rules }] }));
      execFileSync('promtool', ['check', 'rules', 'queries.yaml'], { cwd: folder, stdio: 'pipe' });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
