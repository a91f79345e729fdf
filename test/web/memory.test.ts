import type { CDPSession, Page, Request } from 'playwright-core';
import { expect, it } from 'vitest';
import { useBrowser, visit } from './browser.ts';
import { pagesOf } from './pages.ts';
import { useStage } from './served-stage.ts';

/*
 * Live updates on a fast clock: in each second of the page something changes, and it reads again all that it shows.
 * MULLIGAN_MEMORY=all (npm run web:hour) for 60 minutes of each page; otherwise 80 seconds of those that draw the most.
 *
 * What a page holds settles within some hundred updates (compiled code, the browser's list of requests), by 300 KB at most; after
 * that, an hour of the list of jobs adds 40 bytes per update.
 */
const isWhole = process.env.MULLIGAN_MEMORY === 'all';
const SECONDS = isWhole ? 3_600 : 80;
const shown = isWhole
  ? ['overview', 'failures', 'group', 'jobs', 'job', 'queues', 'gate', 'limit', 'schedules', 'workers', 'audit']
  : ['overview', 'jobs'];
/** An hour of the overview takes some minutes. */
const HOUR = 20 * 60_000;

useBrowser();
const stage = useStage();

interface Usage {
  readonly bytes: number;
  readonly nodes: number;
  readonly listeners: number;
}

async function usageOf(cdp: CDPSession): Promise<Usage> {
  // Once more for what the first collection made unreachable.
  for (let time = 0; time < 2; time++) await cdp.send('HeapProfiler.collectGarbage');
  const { usedSize } = await cdp.send('Runtime.getHeapUsage');
  const { nodes, jsEventListeners } = await cdp.send('Memory.getDOMCounters');
  return { bytes: usedSize, nodes, listeners: jsEventListeners };
}

/** Lets seconds pass, in each of which something changes. Answers how often the page has read. */
async function update(page: Page, seconds: number): Promise<number> {
  let read = 0;
  const open = new Set<Request>();
  const began = (request: Request): void => void (/\/api\/v1\/(?!events)/.test(request.url()) && open.add(request));
  const ended = (request: Request): void => {
    // A request that began before is not counted.
    if (open.delete(request) && open.size === 0) read++;
  };
  page.on('request', began).on('requestfinished', ended).on('requestfailed', ended);
  for (let second = 0; second < seconds; second++) {
    await stage().mulligan.enqueue('image.resize', { image: second }, { queue: 'thumbnails' });
    await page.clock.fastForward(1_000);
    while (open.size > 0) await page.evaluate('0');
  }
  page.off('request', began).off('requestfinished', ended).off('requestfailed', ended);
  return read;
}

const most: Usage = { bytes: 400_000, nodes: 400, listeners: 10 };

it.each(shown)(
  '%s: updated for long, it holds no more memory, elements or listeners than before',
  { timeout: HOUR },
  async (name) => {
    const pages = await pagesOf(stage().mulligan, stage());
    const page = await visit(stage().url, { at: pages[name] as string });
    const cdp = await page.context().newCDPSession(page);
    await page.clock.install();
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
    await update(page, SECONDS / 4);
    const early = await usageOf(cdp);
    const read = await update(page, (3 * SECONDS) / 4);
    const late = await usageOf(cdp);
    if (isWhole) console.log(`${name}: ${read} reads, ${JSON.stringify(early)} -> ${JSON.stringify(late)}`);
    expect(read).toBeGreaterThan(SECONDS / 4);
    for (const what of ['bytes', 'nodes', 'listeners'] as const) {
      expect(late[what], what).toBeLessThanOrEqual(early[what] + most[what]);
    }
  },
);
