import { namesOf, unexpected } from './config.ts';
import { read } from './untrusted/thrown.ts';

/**
 * The only access to time and randomness. All other code takes a Clock, so that it runs under a virtual one in tests; a
 * lint rule keeps `Date.now`, `Math.random` and timers in this file.
 */
export interface Clock {
  /** Wall-clock time in ms since the epoch. It may step; never use it to measure a duration. */
  now(): number;
  /** Milliseconds since an arbitrary point. It never steps back. */
  monotonic(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** A time-ordered id (UUIDv7); ids made by one clock sort in the order they were made. */
  newId(): string;
  /** Runs `action` once after `delayMs`, unless cancelled. With 0: as soon as everything that is ready has run. */
  after(delayMs: number, action: () => void): Timer;
  /**
   * Calls back ten times a second with how much later the event loop came to it than it should have, until cancelled. Only the
   * system's clock has it: under a virtual one no time passes while code runs.
   */
  watchLoop?(sample: (lateMs: number) => void): Timer;
}

export interface Timer {
  cancel(): void;
}

const clockParts = namesOf<Omit<Clock, 'watchLoop'>>({
  now: true,
  monotonic: true,
  random: true,
  newId: true,
  after: true,
});

export function checkClock(clock: Clock, what: string): Clock {
  const missing = clockParts.find((part) => typeof read(clock, part) !== 'function');
  if (missing === undefined) return clock;
  throw unexpected(what, `a clock, which has ${missing}()`, clock, 'VirtualClock is one for tests.');
}

/** Node fires a timer at once when its delay does not fit 31 bits; longer waits are taken in steps. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

class NextTurn implements Timer {
  readonly #handle: NodeJS.Immediate;

  constructor(action: () => void) {
    this.#handle = setImmediate(action);
  }

  cancel(): void {
    clearImmediate(this.#handle);
  }
}

class SystemTimer implements Timer {
  #handle: NodeJS.Timeout;

  constructor(delayMs: number, action: () => void) {
    this.#handle = this.#wait(delayMs, action);
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }

  #wait(delayMs: number, action: () => void): NodeJS.Timeout {
    const step = Math.min(delayMs, LONGEST_TIMER_MS);
    return setTimeout(() => {
      if (delayMs > step) this.#handle = this.#wait(delayMs - step, action);
      else action();
    }, step);
  }
}

const SAMPLE_EVERY_MS = 100;

/** Unlike `monitorEventLoopDelay` of Node.js, this runs in Bun and in a browser as well. It keeps no process running. */
class LoopWatch implements Timer {
  readonly #handle: NodeJS.Timeout;

  constructor(sample: (lateMs: number) => void) {
    let dueAt = performance.now() + SAMPLE_EVERY_MS;
    this.#handle = setInterval(() => {
      const now = performance.now();
      sample(Math.max(0, now - dueAt));
      dueAt = now + SAMPLE_EVERY_MS;
    }, SAMPLE_EVERY_MS);
    if (typeof this.#handle === 'object') this.#handle.unref();
  }

  cancel(): void {
    clearInterval(this.#handle);
  }
}

const entropy = new Uint8Array(4096);
let entropyUsed = entropy.length;

function randomBytes(count: number): Uint8Array {
  if (entropyUsed + count > entropy.length) {
    crypto.getRandomValues(entropy);
    entropyUsed = 0;
  }
  entropyUsed += count;
  return entropy.subarray(entropyUsed - count, entropyUsed);
}

/** Makes the ids of one clock: UUIDv7 with a 12-bit counter, so that one millisecond's ids stay in order. */
export function idMaker(now: () => number, bytes: (count: number) => Uint8Array): () => string {
  let lastMs = 0;
  let time = formatTime(lastMs);
  let counter = 0;
  const startAt = (ms: number): void => {
    lastMs = ms;
    time = formatTime(ms);
    counter = 0;
  };
  return () => {
    const ms = Math.floor(now());
    if (ms > lastMs) startAt(ms);
    // More than 4,096 ids in a millisecond (or a clock that stepped back): borrow from the next one.
    else if (++counter > 0xfff) startAt(lastMs + 1);
    return `${time}-${formatRest(counter, bytes(8))}`;
  };
}

const hex: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
/** The version of the UUID, and the first four bits of the counter. */
const versions: readonly string[] = Array.from({ length: 16 }, (_, digit) => `7${digit.toString(16)}`);

function formatTime(ms: number): string {
  const time = ms.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}

function formatRest(counter: number, tail: Uint8Array): string {
  const byte = (index: number): string => hex[tail[index] as number] as string;
  const variant = hex[((tail[0] as number) & 0x3f) | 0x80] as string;
  return `${versions[counter >> 8]}${hex[counter & 0xff]}-${variant}${byte(1)}-${byte(2)}${byte(3)}${byte(4)}${byte(5)}${byte(6)}${byte(7)}`;
}

let channel: InstanceType<typeof MessageChannel> | null = null;
const turns: (() => void)[] = [];

/** Calls `action` in the next turn of the event loop, which takes no time of its own. Browsers have no `setImmediate`. */
export function inNextTurn(action: () => void): void {
  if (typeof setImmediate === 'function') {
    setImmediate(action);
    return;
  }
  if (channel === null) {
    channel = new MessageChannel();
    channel.port1.addEventListener('message', () => turns.shift()?.());
    channel.port1.start();
  }
  turns.push(action);
  channel.port2.postMessage(null);
}

const systemNow = (): number => Date.now();

/** Resolves in the next turn of the event loop, after everything that is ready has run. */
export function nextTurn(clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.after(0, resolve));
}

export const systemClock: Clock = {
  now: systemNow,
  monotonic: () => performance.now(),
  random: () => Math.random(),
  newId: idMaker(systemNow, randomBytes),
  after: (delayMs, action) => (delayMs <= 0 ? new NextTurn(action) : new SystemTimer(delayMs, action)),
  watchLoop: (sample) => new LoopWatch(sample),
};
