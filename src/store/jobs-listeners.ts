import type { ChangeAnswer, ChangeRequest } from './change.ts';
import type { CancelAnswer, JobsListener, SettleAnswer, Settlement, Unsubscribe } from './store.ts';

/** The listeners of one store in this process (`Store.onJobs`), and what its own writes tell them. */
export class JobsListeners {
  readonly #listeners: Set<{ readonly listener: JobsListener }> = new Set();

  add(listener: JobsListener): Unsubscribe {
    const entry = { listener };
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  ended(ids: readonly string[]): void {
    if (ids.length > 0) for (const { listener } of this.#listeners) listener.ended?.(ids);
  }

  cancelling(ids: readonly string[]): void {
    if (ids.length > 0) for (const { listener } of this.#listeners) listener.cancelling?.(ids);
  }

  missed(): void {
    for (const { listener } of this.#listeners) listener.missed?.();
  }

  /** After these settlements were answered. */
  settled(settlements: readonly Settlement[], answers: readonly SettleAnswer[]): void {
    if (this.#listeners.size === 0) return;
    const hasEnded = ({ decision }: Settlement, index: number): boolean =>
      answers[index] === 'cancelled' || (answers[index] === 'settled' && !('delayMs' in decision));
    this.ended(settlements.filter(hasEnded).map(({ id }) => id));
  }

  /** After a cancel was answered. */
  cancelled(answers: readonly CancelAnswer[]): void {
    const idsOf = (result: CancelAnswer['result']): string[] =>
      answers.filter((answer) => answer.result === result).map(({ id }) => id);
    this.ended(idsOf('cancelled'));
    this.cancelling(idsOf('cancelling'));
  }

  /** After a part of a bulk action was answered, which does not tell apart the cancelled jobs that ran. */
  changed({ action }: ChangeRequest, { ids }: ChangeAnswer): void {
    if (action !== 'cancel') return;
    this.ended(ids);
    this.cancelling(ids);
  }

  clear(): void {
    this.#listeners.clear();
  }
}
