import { MulliganError } from '../errors.ts';
import type { Logger } from '../observe/log.ts';

const OUTAGE = 'the store does not answer; trying again until it does';
const UNEXPECTED = 'an unexpected error in Mulligan or in its store; trying again. Please report it';

/**
 * Reports what keeps a worker from its work: once when it begins and once when it is over, so that an outage does not fill
 * the log. Stores throw errors of Mulligan's own classes when they cannot be reached; any other error is a mistake in the
 * code, and is reported as that.
 */
export class Trouble {
  readonly #log: Logger;
  #reported: string | null = null;

  constructor(log: Logger) {
    this.#log = log;
  }

  failed(error: unknown): void {
    const message = error instanceof MulliganError ? OUTAGE : UNEXPECTED;
    if (this.#reported === message) return;
    this.#reported = message;
    this.#log.error(message, { error });
  }

  /** Not reported during an outage, which explains it. */
  unrecorded(runs: number, error: unknown): void {
    if (!(error instanceof MulliganError)) this.failed(error);
    else if (this.#reported === null) {
      this.#log.warn('outcomes could not be recorded; trying again', { runs, error });
    }
  }

  over(): void {
    if (this.#reported === OUTAGE) this.#log.info('the store answers again');
    this.#reported = null;
  }
}
