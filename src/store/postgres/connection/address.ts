import { describe } from '../../../config.ts';
import { ConfigError } from '../../../errors.ts';
import { scrubAddress } from '../../../untrusted/scrub.ts';

/** Where the servers are: one URL per host, and how to name them all without a password. */
export interface Address {
  readonly urls: readonly string[];
  readonly name: string;
  /** Asked for in the URL. */
  readonly schema: string | null;
}

/** Ours to understand; the driver would pass them on to a server that does not know them. */
const OWN_PARAMETERS = ['schema', 'target_session_attrs'];

/** The user ends at the last @ before the path, as a URL has it: a password may hold one, and must not pass for a host. */
const SHAPE = /^(?<scheme>postgres(?:ql)?:\/\/)(?<user>[^/?#]*@)?(?<hosts>[^/?#@]*)(?<rest>.*)$/s;

export function isPostgresUrl(url: string): boolean {
  return /^postgres(ql)?:/.test(url);
}

/** `postgres://user:password@host:port,host:port/database?options`: as libpq has it, with any number of hosts. */
export function parseAddress(url: string): Address {
  const parts = SHAPE.exec(url)?.groups as Record<'scheme' | 'user' | 'hosts' | 'rest', string | undefined> | undefined;
  if (!parts) throw notAnAddress(url);
  const { scheme, user = '', hosts = '', rest = '' } = parts;
  const [database = '', query = ''] = rest.split(/\?(.*)/s);
  const parameters = new URLSearchParams(query);
  const schema = parameters.get('schema');
  for (const own of OWN_PARAMETERS) parameters.delete(own);
  const others = parameters.size > 0 ? `?${parameters}` : '';
  const urls = hosts.split(',').map((host) => `${scheme}${user}${host}${database}${others}`);
  // An @ in the name of the database, or before any option, comes from a password with a slash or ? in it: we would show a part of it.
  const isCut = database.includes('@') || /^[^=]*@/.test(query);
  if (isCut || !urls.every((one) => URL.canParse(one))) throw notAnAddress(url);
  return { urls, name: `${scheme}${hosts}${database}`, schema };
}

function notAnAddress(url: string): ConfigError {
  return new ConfigError(
    `expected a URL such as postgres://host:5432/database, with user:password@ before the host, got ${describe(scrubAddress(url))}. ` +
      'In user and password write / as %2F, ? as %3F, # as %23, @ as %40 and % as %25.',
  );
}

export const DEFAULT_SCHEMA = 'mulligan';
const LONGEST_SCHEMA = 50;

/** It becomes part of every statement and of messages, so it is held to what reads the same in both. */
export function checkSchema(schema: unknown): string {
  if (typeof schema === 'string' && /^[a-z_][a-z0-9_]*$/.test(schema) && schema.length <= LONGEST_SCHEMA) {
    if (!schema.startsWith('pg_') && schema !== 'information_schema') return schema;
  }
  throw new ConfigError(
    `schema: expected up to ${LONGEST_SCHEMA} lower-case letters, digits and underscores, not beginning with a digit or pg_, got ${describe(schema)}.`,
  );
}

/** As statements name it: a checked name may still be a word of SQL, such as `user`. */
export function quoted(schema: string): string {
  return `"${schema}"`;
}
