import { systemClock } from '../../../clock.ts';
import { ConfigError, MulliganError } from '../../../errors.ts';
import { type ConnectOptions, connect } from '../../../store/postgres/connection/connect.ts';
import { adviceOn } from '../../../store/postgres/connection/failure.ts';
import { type Database, withExisting } from '../../database.ts';
import { bad, type Check, look, worst } from '../check.ts';
import { jobChecks } from '../jobs.ts';
import { clock, connection, pooler, wakeUps } from './connection.ts';
import { jobTimes } from './job-times.ts';
import { functionSets, rights, schemaVersion } from './schema.ts';
import { Server } from './server.ts';
import { autovacuum, connections, durability, encoding, isolation, version } from './settings.ts';
import { idleTransactions, preparedTransactions, replicationSlots, snapshots } from './snapshots.ts';
import { tables } from './tables.ts';

export async function examinePostgres(database: Database, known: ReadonlySet<string> | null): Promise<Check[]> {
  // A name of its own, so that it is not mistaken for a worker where sessions are listed.
  const options = { url: database.url, poolOptions: { application_name: 'mulligan doctor' } };
  try {
    return await onServer(options, (server) => examineServer(server, database, known));
  } catch (error) {
    if (!(error instanceof MulliganError) || error instanceof ConfigError) throw error;
    // Where there is better advice, it is part of what was said.
    const isAdvised = adviceOn(error.cause) !== undefined;
    const advice = isAdvised ? 'mend that and look again' : 'see that the server runs and that the address is right';
    return [bad('connection', error.message, advice)];
  }
}

async function onServer(options: ConnectOptions, action: (server: Server) => Promise<Check[]>): Promise<Check[]> {
  const { hosts, schema } = await connect(options);
  try {
    const client = await hosts.connect();
    try {
      return await action(new Server(hosts, client, schema));
    } finally {
      client.release();
    }
  } finally {
    await hosts.close();
  }
}

async function examineServer(server: Server, database: Database, known: ReadonlySet<string> | null): Promise<Check[]> {
  const around = [
    ...(await look('connection', () => connection(server, systemClock))),
    ...(await look('pooler', () => pooler(server))),
    ...(await look('wake-ups', () => wakeUps(server, systemClock))),
    ...(await look('clock', () => clock(server, systemClock))),
    ...(await look('server', () => version(server))),
    ...(await look('encoding', () => encoding(server))),
    ...(await look('durability', () => durability(server))),
    ...(await look('isolation', () => isolation(server))),
    ...(await look('autovacuum', () => autovacuum(server))),
    ...(await look('connections', () => connections(server))),
    ...(await look('idle transactions', () => idleTransactions(server))),
    ...(await look('snapshots', () => snapshots(server))),
    ...(await look('prepared transactions', () => preparedTransactions(server))),
    ...(await look('replication slots', () => replicationSlots(server))),
  ];
  const schema = [
    ...(await look('schema', () => schemaVersion(server))),
    ...(await look('rights', () => rights(server))),
  ];
  // Without a schema of this version, or the right to read it, there is nothing to ask.
  if (worst(schema) !== 'ok') return [...around, ...schema];
  return [
    ...around,
    ...schema,
    ...(await look('functions', () => functionSets(server))),
    ...(await look('tables', () => tables(server))),
    ...(await look('jobs', async () => {
      const times = await jobTimes(server);
      return withExisting(database, (mulligan) => jobChecks(mulligan, times, known));
    })),
  ];
}
