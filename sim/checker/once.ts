import type { Fence } from '../../src/store/store.ts';
import type { ExecutedEvent, HistoryEvent } from '../history.ts';
import type { Check } from './checker.ts';

/** Guarantee 11: an effect runs again only when no result was recorded before its run began. */
export class OnceCheck {
  /** When a result was recorded first, by job and key. */
  readonly #recorded: Map<string, number> = new Map();
  /** When the handler of a run began, by job and run. */
  readonly #began: Map<string, number> = new Map();

  observe(event: HistoryEvent, expect: Check['expect']): void {
    if (event.kind === 'executed' && event.verb === 'remember') this.#remembered(event);
    if (event.kind === 'handler') this.#began.set(`${event.job} ${event.run}`, event.at);
    if (event.kind !== 'effect') return;
    const recordedAt = this.#recorded.get(`${event.job} ${event.key}`) ?? Number.POSITIVE_INFINITY;
    const beganAt = this.#began.get(`${event.job} ${event.run}`) as number;
    expect(
      11,
      beganAt <= recordedAt,
      () => `the effect of ${event.job} ran again in run ${event.run}, after its result was recorded`,
    );
  }

  #remembered({ at, args, value }: ExecutedEvent): void {
    const [fence, key] = args as [Fence, string];
    const name = `${fence.id} ${key}`;
    if (value === true && !this.#recorded.has(name)) this.#recorded.set(name, at);
  }
}
