import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** `session` passes everything on; `transaction` refuses settings at the start, as PgBouncer does; `silent` loses notifications. */
export type Pooling = 'session' | 'transaction' | 'silent';

const BACKEND_KEY = 'K';
const NOTIFICATION = 'A';

/** As much of a connection pooler as its clients can see. */
export class FakePooler implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets: Set<Socket> = new Set();
  readonly #target: URL;

  static async before(url: string, pooling: Pooling): Promise<FakePooler> {
    const pooler = new FakePooler(url, pooling);
    pooler.#server.listen(0, '127.0.0.1');
    await once(pooler.#server, 'listening');
    return pooler;
  }

  private constructor(url: string, pooling: Pooling) {
    this.#target = new URL(url);
    this.#server = createServer((client) => this.#serve(client, pooling));
  }

  get url(): string {
    const url = new URL(this.#target);
    url.port = String((this.#server.address() as { port: number }).port);
    return url.href;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #serve(client: Socket, pooling: Pooling): void {
    this.#keep(client);
    client.once('data', (startup: Buffer) => {
      if (pooling === 'transaction' && startup.includes('statement_timeout')) return void client.end(refusal());
      const server = connect(Number(this.#target.port), this.#target.hostname);
      this.#keep(server);
      server.write(startup);
      client.pipe(server);
      let rest: Buffer = Buffer.alloc(0);
      server.on('data', (chunk: Buffer) => {
        rest = Buffer.concat([rest, chunk]);
        for (let length = lengthOf(rest); rest.length >= length; length = lengthOf(rest)) {
          const message = rest.subarray(0, length);
          rest = rest.subarray(length);
          const type = String.fromCharCode(message[0] as number);
          // The process a client would cancel is the pooler's to know.
          if (type === BACKEND_KEY) message.writeInt32BE(4_711, 5);
          if (type !== NOTIFICATION || pooling === 'session') client.write(message);
        }
      });
      server.on('close', () => client.end());
      client.on('close', () => server.destroy());
    });
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay();
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
  }
}

/** Of the first message: a letter, then a length that counts itself. Endless while that is still to come. */
function lengthOf(bytes: Buffer): number {
  return bytes.length < 5 ? Number.POSITIVE_INFINITY : 1 + bytes.readInt32BE(1);
}

function refusal(): Buffer {
  const fields = ['SFATAL', 'VFATAL', 'C08P01', 'Munsupported startup parameter: statement_timeout'];
  const body = Buffer.from(`${fields.join('\0')}\0\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
