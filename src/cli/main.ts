import { scrub, scrubAddress } from '../untrusted/scrub.ts';
import { run } from './program.ts';

/* The entry of the command line: `bin/mulligan.js` imports it, and so runs it. */
const args = process.argv.slice(2);
hideSecrets(args);
const exitCode = await run(args, process.env);
// A jobs file may keep connections open; the process ends once its output is written.
process.stdout.write('', () => process.stderr.write('', () => process.exit(exitCode)));

/** Everyone on the machine can list the arguments of processes: a password stays among them only until this. */
function hideSecrets(given: readonly string[]): void {
  const shown = given.map((arg, i) => {
    if (given[i - 1] === '--db') return scrubAddress(arg);
    return arg.startsWith('--db=') ? `--db=${scrubAddress(arg.slice(5))}` : scrub(arg);
  });
  if (shown.some((arg, i) => arg !== given[i])) process.title = ['mulligan', ...shown].join(' ');
}
