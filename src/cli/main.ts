import { run } from './program.ts';

/* The entry of the command line: `bin/mulligan.js` imports it, and so runs it. */
const exitCode = await run(process.argv.slice(2), process.env);
// A jobs file may keep connections open; the process ends once its output is written.
process.stdout.write('', () => process.stderr.write('', () => process.exit(exitCode)));
