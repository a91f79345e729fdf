import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type Afterwards = 'keep' | 'remove';

const INTERRUPTED = 130;

/**
 * A temporary folder for `action`, removed whatever ends the process. The first signal to stop lets the action end by
 * itself, through `interrupted`; a second one ends the process at once.
 */
export async function withTemporaryFolder<T>(
  afterwards: Afterwards,
  action: (folder: string, interrupted: AbortSignal) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-demo-'));
  const remove = (): void => {
    if (afterwards === 'remove') rmSync(folder, { recursive: true, force: true });
  };
  process.on('exit', remove);
  const controller = new AbortController();
  const interrupt = (): void => {
    if (controller.signal.aborted) process.exit(INTERRUPTED);
    controller.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt);
  const result = await action(folder, controller.signal);
  if (controller.signal.aborted) process.exit(INTERRUPTED);
  remove();
  process.off('exit', remove);
  return result;
}
