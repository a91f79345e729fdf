import { createHash } from 'node:crypto';
import { quoted } from '../connection/address.ts';
import { asideSql } from '../sql/aside.ts';
import { backScanSql } from '../sql/back-scan.ts';
import { changeSql } from '../sql/change.ts';
import { claimSql } from '../sql/claim.ts';
import { claimGatedSql } from '../sql/claim-gated.ts';
import { claimLimitedSql } from '../sql/claim-limited.ts';
import { debounceSql } from '../sql/debounce.ts';
import { endedSql } from '../sql/ended.ts';
import { enqueueSql } from '../sql/enqueue.ts';
import { errorGroupsSql } from '../sql/error-groups.ts';
import { errorHistorySql } from '../sql/error-history.ts';
import { expiredSql } from '../sql/expired.ts';
import { forecastSql } from '../sql/forecast.ts';
import { gatesSql } from '../sql/gates.ts';
import { heartbeatSql } from '../sql/heartbeat.ts';
import { historySql } from '../sql/history.ts';
import { internedSql } from '../sql/interned.ts';
import { limitsSql } from '../sql/limits.ts';
import { onLimitSql } from '../sql/on-limit.ts';
import { operateSql } from '../sql/operate.ts';
import { partitionsSql } from '../sql/partitions.ts';
import { schedulesSql } from '../sql/schedules.ts';
import { settleSql } from '../sql/settle.ts';
import { workersSql } from '../sql/workers.ts';

/*
 * Functions are installed beside the tables under a version of their own: `claim` is `claim_1a2b3c4d` on the server,
 * where 1a2b3c4d is a digest of the SQL of all functions. Two programs with different functions therefore call different
 * ones, and work on the same tables at the same time: that is a rolling deploy.
 *
 * In sql/ the functions and types have their plain names, also where they call each other. The rule that versions them:
 *   - a function is what `CREATE FUNCTION name(` makes, and is used as `name(`, without a space;
 *   - a type is what `CREATE TYPE name` makes; its name is used for nothing else.
 */
export interface FunctionSet {
  readonly version: string;
  /** Makes all of them, in the schema that is first on the search path. */
  readonly sql: string;
  /** A statement in which `@.` stands for the schema, as this schema's server takes it. */
  resolve(statement: string, schema: string): string;
}

const CREATES = /\bCREATE (FUNCTION|TYPE) (\w+)(\(?)/g;

export function functionSet(source: string): FunctionSet {
  const version = createHash('sha256').update(source).digest('hex').slice(0, 8);
  const created = [...source.matchAll(CREATES)].map(([, what, name, next]) => ({ what, name: name as string, next }));
  const misspelt = created.find(({ what, next }) => what === 'FUNCTION' && next !== '(');
  if (misspelt !== undefined) throw new Error(`expected CREATE FUNCTION ${misspelt.name}( without a space`);
  const functions = created.filter(({ what }) => what === 'FUNCTION').map(({ name }) => `${name}(?=\\()`);
  const types = created.filter(({ what }) => what === 'TYPE').map(({ name }) => `${name}\\b`);
  const names = [...functions, ...types].join('|') || '(?!)';
  const inSource = new RegExp(`\\b(?:${names})`, 'g');
  const inStatement = new RegExp(`@\\.(?:${names})`, 'g');
  return {
    version,
    sql: source.replace(inSource, `$&_${version}`),
    resolve: (statement, schema) =>
      statement.replace(inStatement, `$&_${version}`).replaceAll('@.', `${quoted(schema)}.`),
  };
}

/** Those of this program. */
export const functions: FunctionSet = functionSet(
  [
    internedSql,
    partitionsSql,
    asideSql,
    gatesSql,
    endedSql,
    debounceSql,
    onLimitSql,
    enqueueSql,
    claimSql,
    limitsSql,
    claimGatedSql,
    claimLimitedSql,
    backScanSql,
    expiredSql,
    errorGroupsSql,
    settleSql,
    heartbeatSql,
    historySql,
    errorHistorySql,
    operateSql,
    changeSql,
    schedulesSql,
    workersSql,
    forecastSql,
  ].join('\n'),
);
