import type { Clock, Timer } from '../clock.ts';
import type { Unsubscribe } from '../store/store.ts';

/** Proxies close connections that are silent for longer; a comment shows that this one lives. */
const COMMENT_EVERY_MS = 15_000;
/** A reader that is this many messages behind is cut off: it comes back, and continues after the last one it saw. */
const MOST_UNREAD = 2_000;

export interface StreamedEvent {
  /** Left out where a reader cannot continue after it. */
  readonly id?: string;
  readonly event: string;
  readonly data: unknown;
}

export interface StreamParts {
  readonly clock: Clock;
  /** Either one ends the stream. */
  readonly signals: readonly AbortSignal[];
  /** Begins to send; what it returns ends that. */
  readonly subscribe: (send: (event: StreamedEvent) => void) => Unsubscribe;
}

/** Server-Sent Events. */
export function eventStream({ clock, signals, subscribe }: StreamParts): Response {
  const encoder = new TextEncoder();
  let end = (): void => {};
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let unsubscribe: Unsubscribe = () => {};
        let timer: Timer | null = null;
        let isOpen = true;
        const write = (text: string): void => {
          if (!isOpen) return;
          controller.enqueue(encoder.encode(text));
          if ((controller.desiredSize ?? 0) < -MOST_UNREAD) end();
        };
        const comment = (): void => {
          write(':\n\n');
          timer = clock.after(COMMENT_EVERY_MS, comment);
        };
        end = () => {
          if (!isOpen) return;
          isOpen = false;
          timer?.cancel();
          unsubscribe();
          for (const signal of signals) signal.removeEventListener('abort', end);
          try {
            controller.close();
          } catch {
            // The reader has closed it.
          }
        };
        comment();
        unsubscribe = subscribe((event) => write(format(event)));
        for (const signal of signals) signal.addEventListener('abort', end, { once: true });
        if (signals.some(({ aborted }) => aborted)) end();
      },
      cancel: () => end(),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' } });
}

/** JSON has no line breaks, so each event has one line of data. */
function format({ id, event, data }: StreamedEvent): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
