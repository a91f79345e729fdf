import { Worker } from 'node:worker_threads';

/** Ends this process when a mutant loops without end: from another thread, because this one no longer answers. */
export class Watchdog {
  readonly #giveUpAt: Float64Array = new Float64Array(new SharedArrayBuffer(8));

  constructor() {
    const code = `
      const { workerData: { giveUpAt, pid } } = require('node:worker_threads');
      setInterval(() => giveUpAt[0] > 0 && Date.now() > giveUpAt[0] && process.kill(pid, 'SIGKILL'), 200);`;
    const workerData = { giveUpAt: this.#giveUpAt, pid: process.pid };
    new Worker(code, { eval: true, workerData }).unref();
  }

  expect(withinMs: number): void {
    this.#giveUpAt[0] = Date.now() + withinMs;
  }

  rest(): void {
    this.#giveUpAt[0] = 0;
  }
}
