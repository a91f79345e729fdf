import { ConfigError } from '../../../errors.ts';
import type { TransactionClient } from '../../store.ts';
import { ignore, type PoolClientLike } from '../connection/driver.ts';

/**
 * Lets `work` have a connection until it returns. After that the connection may be in somebody else's transaction, so
 * nothing more is taken; what is still under way is waited for, and what it says counts.
 */
export async function lend<Result>(
  client: PoolClientLike,
  work: (client: TransactionClient) => Promise<Result>,
): Promise<Result> {
  const underWay = new Set<Promise<unknown>>();
  let over = false;
  const query = (text: string, values?: unknown[]): ReturnType<TransactionClient['query']> => {
    if (over) return Promise.reject(ended());
    const answer = client.query(text, values);
    const told = Promise.resolve(answer);
    underWay.add(told);
    void told.catch(ignore).then(() => underWay.delete(told));
    return answer;
  };
  const lent = { query, getTransactionStatus: () => client.getTransactionStatus?.() };
  try {
    const result = await work(lent);
    over = true;
    await Promise.all(underWay);
    return result;
  } finally {
    over = true;
    await Promise.allSettled(underWay);
  }
}

function ended(): ConfigError {
  return new ConfigError(
    'transaction: this transaction has ended, and nothing was sent. Await every query inside the function that got `tx`.',
  );
}
