/** The HTTP API: to be mounted in an application, or served on its own. */
export { nodeHandler, type RunningServer, serve } from './node.ts';
export type { ServeOptions, ServerOptions } from './options.ts';
export { type Scope, scopes } from './security/scopes.ts';
export { createToken, type StoredToken } from './security/tokens.ts';
export { createServer, type RequestEnvironment, type Server } from './server.ts';
