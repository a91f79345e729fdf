import type { TestProject } from 'vitest/node';
import { PostgresServer } from './postgres-server.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string;
  }
}

/** One server for all tests that do not harm theirs. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await PostgresServer.start({ max_connections: '300' });
  project.provide('postgresUrl', server.url);
  return () => server[Symbol.asyncDispose]();
}
