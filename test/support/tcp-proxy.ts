import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** What happens to one statement on its way. */
export type Mishap = 'lose the request' | 'cut after the request' | 'lose the answer' | 'spoil the answer';

/** A bad network between a client and a PostgreSQL server: it delays, falls silent and cuts, also between a statement and its answer. */
export class TcpProxy implements AsyncDisposable {
  /** Called for every statement; null lets it through. */
  mishap: (statement: string) => Mishap | null = () => null;
  /** For everything, both ways. */
  delayMs = 0;
  /** Keeps connections open, takes new ones, and passes nothing on. */
  silent = false;
  /** How often each has happened. */
  readonly happened: Record<Mishap, number> = {
    'lose the request': 0,
    'cut after the request': 0,
    'lose the answer': 0,
    'spoil the answer': 0,
  };
  readonly #server: Server;
  readonly #links: Set<Link> = new Set();

  static async open(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  private constructor(target: number) {
    this.#server = createServer((client) => {
      const link = new Link(this, client, connect(target, '127.0.0.1'));
      this.#links.add(link);
      client.once('close', () => this.#links.delete(link));
    });
  }

  /** The same address, by way of this network. */
  through(url: string): string {
    const here = new URL(url);
    here.port = `${(this.#server.address() as { port: number }).port}`;
    return `${here}`;
  }

  cutAll(): void {
    for (const link of this.#links) link.cut();
  }

  /** Connections that are open now pass nothing on and are not closed; new connections work. */
  fallSilentForThese(): void {
    for (const link of this.#links) link.silent = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

class Link {
  silent = false;
  readonly #proxy: TcpProxy;
  readonly #client: Socket;
  readonly #upstream: Socket;
  readonly #statements: Statements = new Statements();
  #losesAnswer = false;
  #spoilsAnswer = false;

  constructor(proxy: TcpProxy, client: Socket, upstream: Socket) {
    this.#proxy = proxy;
    this.#client = client;
    this.#upstream = upstream;
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.once('close', () => this.cut());
    }
    client.on('data', (chunk: Buffer) => this.#request(chunk));
    upstream.on('data', (chunk: Buffer) => this.#answer(chunk));
  }

  cut(): void {
    this.#client.destroy();
    this.#upstream.destroy();
  }

  #request(chunk: Buffer): void {
    const mishap = this.#mishap(chunk);
    if (mishap !== null) this.#proxy.happened[mishap]++;
    if (mishap === 'lose the request') {
      this.cut();
      return;
    }
    if (mishap === 'lose the answer') this.#losesAnswer = true;
    if (mishap === 'spoil the answer') this.#spoilsAnswer = true;
    this.#pass(this.#upstream, chunk);
    // A destroyed socket may drop what it has not sent; an ended one sends it first.
    if (mishap === 'cut after the request') {
      this.#upstream.end();
      this.#client.destroy();
    }
  }

  #mishap(chunk: Buffer): Mishap | null {
    for (const statement of this.#statements.read(chunk)) {
      const mishap = this.#proxy.mishap(statement);
      if (mishap !== null) return mishap;
    }
    return null;
  }

  /** The server answers when the statement has been carried out and committed, and not before. */
  #answer(chunk: Buffer): void {
    if (this.#losesAnswer) this.cut();
    else this.#pass(this.#client, this.#spoilsAnswer ? SPOILT_ROW : chunk);
    this.#spoilsAnswer = false;
  }

  #pass(to: Socket, chunk: Buffer): void {
    if (this.silent || this.#proxy.silent) return;
    if (this.#proxy.delayMs === 0) to.write(chunk);
    else setTimeout(() => to.write(chunk), this.#proxy.delayMs);
  }
}

/** A row that ends before the number of its columns: reading it throws. */
const SPOILT_ROW = Buffer.from([...Buffer.from('D'), 0, 0, 0, 4]);

const PARSE = 'P'.charCodeAt(0);
const QUERY = 'Q'.charCodeAt(0);

/** The texts of the statements that a client sends: messages are a letter, a length and a body; the first has no letter. */
class Statements {
  #rest: Buffer = Buffer.alloc(0);
  #started = false;

  read(chunk: Buffer): string[] {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const found: string[] = [];
    for (;;) {
      const at = this.#started ? 1 : 0;
      if (this.#rest.length < at + 4) return found;
      const end = at + this.#rest.readInt32BE(at);
      if (this.#rest.length < end) return found;
      const kind = this.#started ? this.#rest[0] : 0;
      const body = this.#rest.subarray(at + 4, end);
      if (kind === QUERY) found.push(text(body, 0));
      // The name of the statement comes first.
      if (kind === PARSE) found.push(text(body, body.indexOf(0) + 1));
      this.#rest = this.#rest.subarray(end);
      this.#started = true;
    }
  }
}

function text(body: Buffer, from: number): string {
  return body.toString('utf8', from, body.indexOf(0, from));
}
