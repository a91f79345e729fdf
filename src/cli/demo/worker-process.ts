import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../clock.ts';
import { printable } from '../../printable.ts';

const PATIENCE_MS = 3_000;
const MOST_STARTS = 20;

/** The worker process that gets killed: started again whenever it dies, until it is stopped. */
export class WorkerProcess {
  readonly #url: string;
  readonly #onEvent: (what: string) => void;
  readonly #failed: (error: Error) => void;
  #child: ChildProcess | null = null;
  #starts = 0;
  #stopping = false;

  constructor(url: string, onEvent: (what: string) => void, failed: (error: Error) => void) {
    this.#url = url;
    this.#onEvent = onEvent;
    this.#failed = failed;
    process.on('exit', this.#kill);
  }

  start(): void {
    this.#starts++;
    // The sources run as they are in tests, the compiled files in production.
    const entry = new URL(import.meta.url.endsWith('.ts') ? './child.ts' : './child.js', import.meta.url);
    const child = fork(fileURLToPath(entry), [this.#url], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#child = child;
    child.on('error', this.#failed);
    child.on('message', (logged) => this.#onEvent(printable(`worker process ${child.pid}: ${logged}`)));
    child.on('exit', (code, signal) => this.#died(child, code, signal));
    this.#onEvent(`worker process ${child.pid} ${this.#starts === 1 ? 'started' : 'takes its place'}`);
  }

  #died(child: ChildProcess, code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#stopping) return;
    if (signal !== 'SIGKILL' || this.#starts >= MOST_STARTS) {
      this.#failed(new Error(`the demo's worker process ended unexpectedly (${signal ?? `exit code ${code}`})`));
      return;
    }
    this.#onEvent(`worker process ${child.pid} was killed by the job it ran (${signal})`);
    this.start();
  }

  /** Asks the process to end, and kills it when it does not. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const child = this.#child;
    if (child !== null && child.exitCode === null && child.signalCode === null) {
      const patience = systemClock.after(PATIENCE_MS, this.#kill);
      const gone = once(child, 'exit');
      if (child.connected) child.send('stop', () => {});
      else this.#kill();
      await gone;
      patience.cancel();
    }
    process.off('exit', this.#kill);
  }

  readonly #kill = (): void => {
    this.#child?.kill('SIGKILL');
  };
}
