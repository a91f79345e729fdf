import { checkInteger, checkList, checkName, namesOf, readOptions } from '../config.ts';
import { type Duration, parseDuration } from '../duration.ts';
import { readTokenFile, readTokens, type StoredToken } from './security/tokens.ts';

export interface ServerOptions {
  /** Who may use the server, as `mulligan token create` writes them. Without any, only programs on this machine may. */
  readonly tokens?: readonly StoredToken[];
  /** A file of tokens, one JSON object per line. */
  readonly tokenFile?: string;
  /** Names under which the server is reached, beside those of this machine: `['queue.example.com']`. */
  readonly hosts?: readonly string[];
  /** Where an application has mounted it: `/queue`. */
  readonly basePath?: string;
  /** Fields that are not shown to those that only read, beside those with the names of credentials (docs/security.md). */
  readonly redact?: readonly string[];
  /** The largest body of a request. Default 16 MiB: a batch of jobs must fit. */
  readonly maxBodyBytes?: number;
  /** The longest that a claim or a result may be waited for in one request. Default 30 s. */
  readonly longestWait?: Duration;
  /**
   * Whether the server rescues the jobs of workers that went silent, deletes what outlived its retention and fires
   * schedules, as workers in this process would. Default false; `serve` does.
   */
  readonly chores?: boolean;
}

/** Where `serve` listens when no port is given. */
export const DEFAULT_PORT = 8833;

export interface ServeOptions extends ServerOptions {
  /** Default `127.0.0.1`. Any other address than those of this machine needs tokens. */
  readonly host?: string;
  /** Default 8833. 0 for one that is free. */
  readonly port?: number;
  /** Whether the dashboard is at the root. Default true. */
  readonly dashboard?: boolean;
  /** How many connections there may be at once. Default 20,000. */
  readonly maxConnections?: number;
  /** How long a client may take to send the headers of a request, and so to say anything at all. Default 10 s. */
  readonly headersTimeout?: Duration;
  /** How long a client may take to send a whole request. Default 30 s. */
  readonly requestTimeout?: Duration;
}

export const serverOptionNames: readonly (keyof ServerOptions)[] = namesOf<ServerOptions>({
  tokens: true,
  tokenFile: true,
  hosts: true,
  basePath: true,
  redact: true,
  maxBodyBytes: true,
  longestWait: true,
  chores: true,
});

export interface ServerSettings {
  readonly tokens: readonly StoredToken[];
  readonly hosts: readonly string[];
  readonly basePath: string;
  readonly redact: readonly string[];
  readonly maxBodyBytes: number;
  readonly longestWaitMs: number;
  readonly chores: boolean;
}

const LARGEST_BODY = 256 * 1_048_576;

export function readServerOptions(options: ServerOptions, what = 'createServer'): ServerSettings {
  const given = readOptions(options, serverOptionNames, what);
  const { tokens = [], tokenFile, hosts = [], basePath = '/', redact = [], chores = false } = given;
  const { maxBodyBytes = 16 * 1_048_576, longestWait = '30s' } = given;
  return {
    tokens: [
      ...readTokens(tokens, `${what}: tokens`),
      ...(tokenFile === undefined ? [] : readTokenFile(checkName(tokenFile, `${what}: tokenFile`, 4_096))),
    ],
    hosts: checkList(hosts, `${what}: hosts`, 'a list of host names', (host) =>
      checkName(host, `${what}: hosts`).toLowerCase(),
    ),
    basePath: `/${checkName(basePath, `${what}: basePath`)}`.replace(/\/+/g, '/').replace(/(.)\/$/, '$1'),
    redact: checkList(redact, `${what}: redact`, 'a list of field names', (key) => checkName(key, `${what}: redact`)),
    maxBodyBytes: checkInteger(maxBodyBytes, `${what}: maxBodyBytes`, { min: 1_024, max: LARGEST_BODY }),
    longestWaitMs: parseDuration(longestWait, `${what}: longestWait`),
    chores: chores === true,
  };
}
