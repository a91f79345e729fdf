import { describe } from '../../config.ts';
import { ConfigError } from '../../errors.ts';
import { scrub } from '../../retry/scrub.ts';

/** Where the servers are: one URL per host, and how to name them all without a password. */
export interface Address {
  readonly urls: readonly string[];
  readonly name: string;
}

const SHAPE = /^(?<scheme>postgres(?:ql)?:\/\/)(?<user>[^@/?]*@)?(?<hosts>[^/?]*)(?<rest>.*)$/s;

/** `postgres://user:password@host:port,host:port/database?options`: as libpq has it, with any number of hosts. */
export function parseAddress(url: string): Address {
  const parts = SHAPE.exec(url)?.groups as Record<'scheme' | 'user' | 'hosts' | 'rest', string | undefined> | undefined;
  if (!parts) throw notAnAddress(url);
  const { scheme, user = '', hosts = '', rest = '' } = parts;
  // Ours to understand; the driver would pass it on to a server that does not know it.
  const own = rest.replace(/([?&])target_session_attrs=[^&]*(&|$)/, (_, before, after) => (after ? before : ''));
  const urls = hosts.split(',').map((host) => `${scheme}${user}${host}${own}`);
  for (const one of urls) {
    try {
      new URL(one);
    } catch {
      throw notAnAddress(url);
    }
  }
  return { urls, name: `${scheme}${hosts}${rest.replace(/\?.*$/s, '')}` };
}

function notAnAddress(url: string): ConfigError {
  return new ConfigError(
    `expected a URL such as postgres://user:password@host:5432/database, came ${describe(scrub(url))}.`,
  );
}

const LONGEST_SCHEMA = 50;

/** It becomes part of every statement, so it is held to what needs no quoting. */
export function checkSchema(schema: unknown): string {
  if (typeof schema === 'string' && /^[a-z_][a-z0-9_]*$/.test(schema) && schema.length <= LONGEST_SCHEMA) {
    if (!schema.startsWith('pg_')) return schema;
  }
  throw new ConfigError(
    `schema: expected up to ${LONGEST_SCHEMA} lower-case letters, digits and underscores, not beginning with a digit or pg_, came ${describe(schema)}.`,
  );
}
