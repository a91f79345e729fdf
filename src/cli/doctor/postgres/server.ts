import type { PoolClientLike } from '../../../store/postgres/connection/driver.ts';
import type { Hosts } from '../../../store/postgres/connection/hosts.ts';

/** One connection, on which everything is asked: a doctor must not need many where there are few. */
export class Server {
  readonly hosts: Hosts;
  readonly client: PoolClientLike;
  readonly schema: string;

  constructor(hosts: Hosts, client: PoolClientLike, schema: string) {
    this.hosts = hosts;
    this.client = client;
    this.schema = schema;
  }

  /** Numbers come as such when they are asked for as int or float8. */
  async rows<Row>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.client.query(sql, values)).rows as Row[];
  }

  async row<Row>(sql: string, values: unknown[] = []): Promise<Row> {
    return (await this.rows<Row>(sql, values))[0] as Row;
  }
}
