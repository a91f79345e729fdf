import { appendFileSync, chmodSync, existsSync, readFileSync } from 'node:fs';
import { systemClock } from '../clock.ts';
import { checkOneOf } from '../config.ts';
import { scopes } from '../server/security/scopes.ts';
import { createToken, readTokenFile } from '../server/security/tokens.ts';
import type { CliCommand, Shell } from './command.ts';
import { Failure } from './failure.ts';

interface Flags {
  readonly scopes: string;
  readonly tokenFile?: string;
}

export function addToken(program: CliCommand, shell: Shell): void {
  const token = program.command('token').description('Tokens for mulligan serve.');
  token
    .command('create')
    .description('Make a token. It is shown once; the file keeps only its SHA-256.')
    .argument('<name>', 'who will use it, for the record of operations')
    .requiredOption('--scopes <list>', `what it may do, separated by commas: ${scopes.join(', ')}`)
    .option('--token-file <file>', 'adds the line to this file; without it, the line is printed')
    .addHelpText(
      'after',
      '\nread: look, payloads redacted. write: enqueue. work: claim and settle. admin: all of that, and operate.\nWith --json: { token, line }.\nExample:\n  mulligan token create ci --scopes read,write --token-file tokens',
    )
    .action((name: string, flags: Flags) => create(shell, name, flags));
}

function create({ output }: Shell, name: string, flags: Flags): void {
  const wanted = flags.scopes.split(',').map((scope) => checkOneOf(scope.trim(), scopes, '--scopes'));
  const { tokenFile } = flags;
  if (tokenFile !== undefined) refuseTaken(name, tokenFile);
  const { token, stored } = createToken(name, [...new Set(wanted)]);
  const line = JSON.stringify({ ...stored, createdAt: new Date(systemClock.now()).toISOString() });
  if (tokenFile !== undefined) append(tokenFile, line);
  const kept =
    tokenFile === undefined ? ['Add this line to the token file of the server:', line] : [`Added to ${tokenFile}.`];
  output.answer({ token, line }, () => [
    token,
    '',
    'It is not shown again. Send it as: Authorization: Bearer TOKEN.',
    ...kept,
  ]);
}

/** The audit names tokens: of two with one name, it could not say which did something. */
function refuseTaken(name: string, file: string): void {
  // A file without a token, which a server refuses, is where the first one goes.
  if (!existsSync(file) || /^\s*(#.*\s*)*$/.test(readFileSync(file, 'utf8'))) return;
  if (!readTokenFile(file).some((token) => token.name === name)) return;
  throw new Failure(
    'TOKEN_FILE',
    `${file} has a token named ${JSON.stringify(name)} already. Choose another name, or remove its line first.`,
  );
}

function append(file: string, line: string): void {
  try {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    // An editor may have left the last line without its end.
    appendFileSync(file, `${/[^\n]$/.test(text) ? '\n' : ''}${line}\n`, { mode: 0o600 });
    chmodSync(file, 0o600);
  } catch (error) {
    throw new Failure('TOKEN_FILE', `expected a file that can be written at ${file}, got none.`, { cause: error });
  }
}
