import type { Browser, Page } from 'playwright-core';
import { build, type Rolldown } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  drawSimulation,
  type Scenario,
  type ScenarioName,
  type SimulationResult,
  scenarios,
  simulate,
} from '../../src/simulate/index.ts';
import { launch } from '../web/launch.ts';

/* mulligan/simulate in a real browser: bundled by Vite as an application would, run there, and its pictures looked at. */

const entry = new URL('../../src/simulate/index.ts', import.meta.url).pathname;
const scenario: Scenario = {
  duration: '60s',
  drain: '30s',
  arrivals: { kind: 'constant', rate: 10 },
  dependency: {
    serviceTime: { kind: 'lognormal', median: '50ms', p99: '300ms' },
    outages: [{ from: '15s', until: '40s' }],
  },
};
const options = { policies: ['standard', 'no-gate'], seed: 11 };

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** The bundle, and the modules that it was made of. */
async function bundle(): Promise<{ readonly code: string; readonly imports: readonly string[] }> {
  const imports: string[] = [];
  const answer = await build({
    configFile: false,
    logLevel: 'silent',
    build: { write: false, minify: false, lib: { entry, formats: ['iife'], name: 'mulligan' } },
    plugins: [{ name: 'imports', enforce: 'pre', resolveId: (id) => void imports.push(id) }],
  });
  const [output] = [answer].flat() as Rolldown.RolldownOutput[];
  return { code: output?.output[0].code ?? '', imports };
}

async function open(colorScheme: 'light' | 'dark'): Promise<Page> {
  const context = await browser.newContext({ colorScheme, viewport: { width: 900, height: 1_400 } });
  return context.newPage();
}

describe('in a browser', () => {
  it('the simulation runs without anything of Node.js, gives the figures of Node.js to the digit, and does not freeze the page', async () => {
    const { code, imports } = await bundle();
    expect(imports.filter((id) => /^node:|^[a-z_]+$/.test(id) && id !== 'croner')).toEqual([]);
    expect(imports.some((id) => id.endsWith('/worker/worker.ts'))).toBe(true);
    const page = await open('light');
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(String(error)));
    await page.addScriptTag({ content: code });
    const { result, frames } = (await page.evaluate(`(async () => {
      let frames = 0;
      const count = () => { frames++; requestAnimationFrame(count); };
      requestAnimationFrame(count);
      const result = await mulligan.simulate(${JSON.stringify(scenario)}, ${JSON.stringify(options)});
      return { result, frames };
    })()`)) as { result: SimulationResult; frames: number };
    expect(errors).toEqual([]);
    expect(result).toEqual(await simulate(scenario, options));
    expect(frames).toBeGreaterThan(1);
    await page.context().close();
  });
});

describe('the picture', () => {
  /** The first minutes are enough to see every label. */
  const short = (name: ScenarioName): Scenario => ({
    ...scenarios[name],
    duration: '150s',
    drain: 0,
    arrivals: { kind: 'constant', rate: 2 },
    dependency: {
      ...scenarios[name].dependency,
      outages: (scenarios[name].dependency.outages ?? []).map((outage) => ({
        ...outage,
        from: '1m',
        until: '80s',
        ...(outage.every !== undefined && { times: 2 }),
      })),
    },
  });

  it.each<[string, Scenario, readonly string[], 'light' | 'dark']>([
    ['one policy', short('poison'), ['standard'], 'light'],
    ['three policies', short('outage-10m'), ['standard', 'patient', 'no-gate'], 'dark'],
    [
      'six policies',
      short('flapping'),
      ['standard', 'patient', 'no-gate', 'financial', 'lowLatency', 'soft-gate'],
      'light',
    ],
    [
      'long texts',
      { ...short('brownout'), name: 'n'.repeat(60), description: 'word '.repeat(200) },
      ['standard'],
      'dark',
    ],
  ])(
    'of %s has no text over another or beyond the edge, and reads against its page',
    async (_, one, policies, scheme) => {
      const svg = drawSimulation(await simulate(one, { policies }));
      const page = await open(scheme);
      await page.setContent(svg);
      const {
        texts,
        width,
        height,
        page: paper,
      } = (await page.evaluate(`(() => {
      const svg = document.querySelector('svg');
      const origin = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll('text')].map((text) => {
        const { left, top, right, bottom } = text.getBoundingClientRect();
        return { text: text.textContent, left: left - origin.left, top: top - origin.top, right: right - origin.left, bottom: bottom - origin.top, fill: getComputedStyle(text).fill };
      });
      return { texts, width: origin.width, height: origin.height, page: getComputedStyle(svg.querySelector('.page')).fill };
    })()`)) as { texts: Box[]; width: number; height: number; page: string };
      expect(texts.length).toBeGreaterThan(40);
      expect(
        texts.filter(({ left, top, right, bottom }) => left < 0 || top < 0 || right > width || bottom > height),
      ).toEqual([]);
      const overlaps = texts.flatMap((a, at) =>
        texts
          .slice(at + 1)
          .filter((b) => overlap(a, b))
          .map((b) => `${a.text} / ${b.text}`),
      );
      expect(overlaps).toEqual([]);
      const low = texts.filter(({ fill }) => contrast(fill, paper) < 4.5);
      expect(low).toEqual([]);
      await page.context().close();
    },
  );
});

interface Box {
  readonly text: string;
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly fill: string;
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** As WCAG defines it, of two `rgb(...)`. */
function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map((part) => {
    const share = Number(part) / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
