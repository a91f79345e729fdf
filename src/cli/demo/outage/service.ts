import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '../../../clock.ts';

const ANSWERS_AFTER_MS = 30;

/** An HTTP service on this machine. Switched off, its port refuses connections, as a service that is down does. */
export class Service {
  #server: Server | null = null;
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}/`;
  }

  get isOn(): boolean {
    return this.#server !== null;
  }

  async switchOn(): Promise<void> {
    const server = createServer((_, response) => {
      systemClock.after(ANSWERS_AFTER_MS, () => response.end('done'));
    });
    // The same port again: jobs know the service by it.
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Calls under way lose their connection. */
  async switchOff(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }
}
