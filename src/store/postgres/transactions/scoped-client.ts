import { ConfigError } from '../../../errors.ts';
import type { TransactionClient } from '../../store.ts';
import { ignore, type PoolClientLike } from '../connection/driver.ts';

/**
 * Runs `work` with a client that ends with it. After that the connection may be in another transaction, so the client
 * refuses further queries; queries that are still under way are awaited, and their errors count.
 */
export async function withScopedClient<Result>(
  client: PoolClientLike,
  work: (client: TransactionClient) => Promise<Result>,
): Promise<Result> {
  const underWay = new Set<Promise<unknown>>();
  let over = false;
  const query = (text: string, values?: unknown[]): ReturnType<TransactionClient['query']> => {
    if (over) return Promise.reject(ended());
    const answer = client.query(text, values);
    const settled = Promise.resolve(answer);
    underWay.add(settled);
    void settled.catch(ignore).then(() => underWay.delete(settled));
    return answer;
  };
  const scoped = { query, getTransactionStatus: () => client.getTransactionStatus?.() };
  try {
    const result = await work(scoped);
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
