import { Counter, Histogram } from './prometheus.ts';

const DURATION_BUCKETS_S = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60];
const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

export interface HttpRequest {
  /** The pattern that matched, such as `/jobs/:id`, and never the path: strangers choose that. */
  readonly route: string;
  readonly method: string;
  readonly status: number;
}

/** Metrics of a server's requests, with labels that no client can add to. */
export class HttpMetrics {
  readonly #requests: Counter;
  readonly #duration: Histogram;

  /** `prefix` opens the names, as `metricsPrefix` of the queue does. */
  constructor(prefix: string) {
    this.#requests = new Counter(`${prefix}_http_requests_total`, 'Requests that were answered, by status.');
    this.#duration = new Histogram(
      `${prefix}_http_request_duration_seconds`,
      'How long requests took, long polls included.',
      DURATION_BUCKETS_S,
    );
  }

  answered({ route, method, status }: HttpRequest, durationMs: number): void {
    const labels = { route, method: methods.has(method) ? method : 'other' };
    this.#requests.add({ ...labels, status: String(status) });
    this.#duration.observe(labels, durationMs / 1_000);
  }

  render(): string {
    return this.#requests.render() + this.#duration.render();
  }
}
