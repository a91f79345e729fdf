import { apiUrl, authorization } from './request.ts';

/*
 * Live changes over Server-Sent Events. Read with fetch and not with EventSource, which cannot send the token in a header.
 *
 *   connecting -> live            the stream is open
 *   live -> polling               it broke; it is opened again after a wait that grows
 *
 * Those that show data are told what changed, and read it again by themselves. While there is no stream they poll.
 */

export type LiveState = 'connecting' | 'live' | 'polling';

type Listener = (event: string) => void;

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** The server says something at least every 15 s. */
const SILENCE_MS = 45_000;

class Live {
  readonly #listeners = new Set<Listener>();
  readonly #stateListeners = new Set<() => void>();
  #state: LiveState = 'connecting';
  #lastId: string | null = null;
  #waitMs = FIRST_WAIT_MS;
  #ended: AbortController | null = null;

  get state(): LiveState {
    return this.#state;
  }

  start(): void {
    this.stop();
    this.#ended = new AbortController();
    void this.#run(this.#ended.signal);
  }

  stop(): void {
    this.#ended?.abort();
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  onState(listener: () => void): () => void {
    this.#stateListeners.add(listener);
    return () => void this.#stateListeners.delete(listener);
  }

  async #run(ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      try {
        await this.#read(ended);
      } catch {
        // Why it broke does not matter: it is opened again.
      }
      if (ended.aborted) return;
      this.#become('polling');
      await new Promise((resolve) => setTimeout(resolve, this.#waitMs));
      this.#waitMs = Math.min(LONGEST_WAIT_MS, this.#waitMs * 2);
    }
  }

  async #read(ended: AbortSignal): Promise<void> {
    const silent = new AbortController();
    const headers = { ...authorization(), ...(this.#lastId !== null && { 'last-event-id': this.#lastId }) };
    const response = await fetch(apiUrl('/api/v1/events'), {
      headers,
      signal: AbortSignal.any([ended, silent.signal]),
    });
    if (!response.ok || response.body === null) return;
    this.#become('live');
    this.#waitMs = FIRST_WAIT_MS;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const timer = setTimeout(() => silent.abort(), SILENCE_MS);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      const blocks = (rest + value).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) this.#tell(block);
    }
  }

  #tell(block: string): void {
    const fields = new Map(
      block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
    );
    this.#lastId = fields.get('id') ?? this.#lastId;
    const event = fields.get('event');
    if (event !== undefined) for (const listener of [...this.#listeners]) listener(event);
  }

  #become(state: LiveState): void {
    if (state === this.#state) return;
    this.#state = state;
    for (const listener of this.#stateListeners) listener();
  }
}

export const live: Live = new Live();
