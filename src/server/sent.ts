import type { Clock } from '../clock.ts';
import type { Share } from './budget.ts';

/** So long a client may take to read an answer whose bytes others wait for. */
const READ_WITHIN_MS = 30_000;
const PART_BYTES = 64 * 1_024;
const JSON_TYPE = { 'content-type': 'application/json' };

/** A response of JSON text, which keeps its share of the budget until the client has read it. */
export function jsonResponse(text: string, status: number, share: Share, clock: Clock): Response {
  if (text.length <= PART_BYTES) {
    share.release();
    return new Response(text, { status, headers: JSON_TYPE });
  }
  const bytes = Buffer.from(text);
  share.shrink(bytes.length);
  const headers = { ...JSON_TYPE, 'content-length': String(bytes.length) };
  return new Response(inParts(bytes, share, clock), { status, headers });
}

function inParts(bytes: Uint8Array, share: Share, clock: Clock): ReadableStream<Uint8Array> {
  let left = bytes;
  const end = (): void => {
    timeout.cancel();
    left = new Uint8Array();
    share.release();
  };
  let fail: (error: Error) => void = () => {};
  const timeout = clock.after(READ_WITHIN_MS, () => {
    end();
    fail(new Error('the client did not read the answer in time'));
  });
  return new ReadableStream({
    start(controller) {
      fail = (error) => controller.error(error);
    },
    pull(controller) {
      controller.enqueue(left.subarray(0, PART_BYTES));
      left = left.subarray(PART_BYTES);
      if (left.length > 0) return;
      end();
      controller.close();
    },
    cancel: end,
  });
}
