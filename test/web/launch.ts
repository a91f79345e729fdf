import chromium from '@sparticuz/chromium';
import { type Browser, chromium as launcher } from 'playwright-core';

/** The packaged browser. */
export async function launch(): Promise<Browser> {
  return launcher.launch({
    executablePath: await chromium.executablePath(),
    args: ['--no-sandbox', '--disable-background-networking', '--disable-dev-shm-usage'],
    headless: true,
  });
}
