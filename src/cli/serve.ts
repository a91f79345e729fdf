import type { Mulligan, MulliganOptions } from '../mulligan.ts';
import { printable } from '../printable.ts';
import { DEFAULT_PORT, type ServeOptions } from '../server/options.ts';
import { scrubAddress } from '../untrusted/scrub.ts';
import type { CliCommand, Shell } from './command.ts';
import { isServer, shownName, withDatabase } from './database.ts';
import { loadDefinitions } from './definitions.ts';
import { wrongUsage } from './failure.ts';
import { given, namingFlags, read, readDuration, readInteger } from './flags.ts';
import { logTo } from './work.ts';

interface Flags {
  readonly host?: string;
  readonly dashboard: boolean;
  readonly port?: string;
  readonly tokenFile?: string;
  readonly allowHost?: readonly string[];
  readonly redact?: readonly string[];
  readonly jobs?: string;
  readonly maxConnections?: string;
  readonly longestWait?: string;
  readonly maxPayloadBytes?: string;
  readonly maxResultBytes?: string;
}

export function addServe(program: CliCommand, shell: Shell): void {
  program
    .command('serve')
    .description(
      'Serve the queue over HTTP: the dashboard, and an API for programs in any language. Creates the database when there is none.',
    )
    .option(
      '--host <address>',
      'the address to listen on (default: 127.0.0.1); any other than this machine needs tokens',
    )
    .option('--port <n>', `the port to listen on; 0 for a free one (default: ${DEFAULT_PORT})`)
    .option('--token-file <file>', 'tokens that may use the server, as mulligan token create writes them')
    .option('--allow-host <name...>', 'host names under which it is reached, beside localhost')
    .option('--redact <field...>', 'fields of payloads that are not shown, beside passwords, tokens and the like')
    .option(
      '--jobs <file>',
      'a .ts or .js module that exports definitions: inputs are checked by them, and POST /drain works',
    )
    .option('--no-dashboard', 'serve the API alone, without the dashboard at /')
    .option('--max-connections <n>', 'how many connections there may be at once (default: 20000)')
    .option('--longest-wait <duration>', 'how long one request may wait for a job or a result (default: 30s)')
    .option('--max-payload-bytes <n>', 'the largest input that it takes (default: 262144)')
    .option('--max-result-bytes <n>', 'the largest result that it takes (default: 262144)')
    .addHelpText(
      'after',
      '\nIt also rescues jobs of workers that went silent, deletes finished jobs after their retention, as it is stored (mulligan retention), and fires schedules.\nSIGINT (Ctrl-C) or SIGTERM stops it. The dashboard is at /, the API at /docs and /openapi.json.\nExamples:\n  mulligan serve --db postgres://localhost/app\n  mulligan token create ci --scopes read,write --token-file tokens\n  mulligan serve --host 0.0.0.0 --token-file tokens --allow-host queue.example.com',
    )
    .action((flags: Flags) => serve(shell, flags));
}

async function serve({ output, ...shell }: Shell, flags: Flags): Promise<void> {
  const database = shell.database();
  if (isServer(database)) {
    throw wrongUsage(
      `${database.from}: expected a database to serve, sqlite:FILE or postgres://HOST/DATABASE, got the server ${scrubAddress(database.url)}. Programs can use that one itself.`,
    );
  }
  const options = readFlags(flags);
  const jobs = flags.jobs === undefined ? [] : await loadDefinitions(flags.jobs);
  await withDatabase(database, { jobs, log: logTo(output), ...readSizes(flags) }, async (mulligan: Mulligan) => {
    // Loaded here: no other command needs it.
    const { serve: serveQueue } = await import('../server/node.ts');
    const running = await serveQueue(mulligan, options).catch(namingTheFlag);
    const { url } = running;
    output.answer({ url }, () => [`Serving ${printable(shownName(database))} at ${url}. Ctrl-C stops it.`]);
    const signal = await stopSignal();
    output.lines([`${signal}: stopping.`]);
    await running.close();
  });
  output.lines(['Stopped.']);
}

function namingTheFlag(error: unknown): never {
  return namingFlags(/^serve: (\w+)(?=: )/, () => {
    throw error;
  });
}

function readFlags(flags: Flags): ServeOptions {
  const { host, port, dashboard, tokenFile, allowHost, redact, maxConnections, longestWait } = flags;
  return {
    dashboard,
    ...given('host', host),
    ...given('tokenFile', tokenFile),
    ...given('hosts', allowHost),
    ...given('redact', redact),
    ...read('port', port, (text) => readInteger(text, '--port', { min: 0, max: 65_535 })),
    ...read('maxConnections', maxConnections, (text) => readInteger(text, '--max-connections', { min: 1 })),
    ...read('longestWait', longestWait, (text) => readDuration(text, '--longest-wait')),
  };
}

function readSizes({
  maxPayloadBytes,
  maxResultBytes,
}: Flags): Pick<MulliganOptions, 'maxPayloadBytes' | 'maxResultBytes'> {
  return {
    ...read('maxPayloadBytes', maxPayloadBytes, (text) => readInteger(text, '--max-payload-bytes', { min: 1 })),
    ...read('maxResultBytes', maxResultBytes, (text) => readInteger(text, '--max-result-bytes', { min: 1 })),
  };
}

/** A second signal ends the process at once, as it does by default. */
function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const onSignal = (name: NodeJS.Signals): void => {
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
      resolve(name);
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
  });
}
