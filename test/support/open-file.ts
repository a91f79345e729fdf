import { Mulligan } from '../../src/index.ts';

/**
 * A process that opens a queue's file: `node open-file.ts URL`. It says `ready` once everything is loaded, opens on the
 * word `go`, enqueues one job, and answers with the id of that job or with what went wrong.
 */
const url = process.argv[2] as string;

process.once('message', async () => {
  try {
    await using mulligan = await Mulligan.open(url);
    const { id } = await mulligan.enqueue('opened', process.pid);
    process.send?.({ id });
  } catch (error) {
    process.send?.({ error: String(error) });
  } finally {
    process.disconnect();
  }
});
// Whatever happens to the test, this does not outlive it.
process.once('disconnect', () => process.exit());
process.send?.('ready');
