import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { launch } from './launch.ts';

/*
 * A real browser, started once per file. Each test gets a context of its own, and fails when the page reports what must not
 * happen: a violation of the content security policy, an error that nothing caught, a message in the console.
 */

let browser: Browser;

export function useBrowser(): void {
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());
}

export interface Visit {
  /** Where in the dashboard, such as `#/jobs`. */
  readonly at?: string;
  readonly token?: string;
  readonly dark?: boolean;
  readonly width?: number;
  /** What the browser says to be its language. */
  readonly language?: string;
  /** What the console may say. */
  readonly allowed?: RegExp;
}

/** Opens the dashboard that is served at this address. */
export async function visit(
  url: string,
  { at = '', token, dark = false, width = 1_280, language, allowed }: Visit = {},
): Promise<Page> {
  const context: BrowserContext = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: dark ? 'dark' : 'light',
    locale: 'en-GB',
  });
  context.setDefaultTimeout(20_000);
  if (token !== undefined) {
    await context.addInitScript(`sessionStorage.setItem('mulligan.token', ${JSON.stringify(token)})`);
  }
  if (language !== undefined) {
    const get = `{ get: () => ${JSON.stringify(language)} }`;
    await context.addInitScript(`Object.defineProperty(Navigator.prototype, 'language', ${get})`);
  }
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    const isLoud = ['error', 'warning'].includes(message.type());
    if (isLoud && !allowed?.test(message.text())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  onTestFinished(async () => {
    await context.close();
    if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join('\n')}`);
  });
  await page.goto(`${url}/${at}`);
  return page;
}

/** Whether something is wider than the page, or a table than its box, which would cut it off. */
export function overflows(page: Page): Promise<boolean> {
  return page.evaluate(`[document.documentElement, ...document.querySelectorAll('.table-box')]
    .some((element) => element.scrollWidth > element.clientWidth)`);
}
