import { Mulligan } from '../../src/mulligan.ts';
import { serve } from '../../src/server/index.ts';
import type { ServerSpec } from './bounded-server.ts';

/* The process of a bounded server. */

const { target, tokens, longestWait = '30s' } = JSON.parse(process.env.BOUNDED_SERVER as string) as ServerSpec;
const mulligan = await Mulligan.open(target, { log: () => {} });
const server = await serve(mulligan, { port: 0, tokens, longestWait, dashboard: false });

const MB = 1e6;
let peak = 0;
const look = (): void => {
  peak = Math.max(peak, process.memoryUsage().heapUsed);
};
setInterval(look, 20).unref();
process.on('message', () => {
  look();
  globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  const isPolluted = ({} as { polluted?: boolean }).polluted === true;
  process.send?.({ peakHeap: peak / MB, heap: heapUsed / MB, rss: rss / MB, isPolluted });
});
process.on('disconnect', () => process.exit());
process.send?.(server.url);
