/**
 * What a token may do. read: look at everything, payloads redacted. write: enqueue. work: claim, renew and settle jobs, and
 * see their payloads. admin: all of that, and operate.
 */
export const scopes = ['read', 'write', 'work', 'admin'] as const;
export type Scope = (typeof scopes)[number];

/** Who sent a request. */
export interface Principal {
  /** For the audit. */
  readonly name: string;
  readonly scopes: ReadonlySet<Scope>;
  /** A program on this machine, where no tokens are needed. */
  readonly isLocal: boolean;
}

/** Whether one of the wanted scopes is held; `admin` holds all. */
export function isAllowed({ scopes }: Principal, wanted: readonly Scope[]): boolean {
  return scopes.has('admin') || wanted.some((scope) => scopes.has(scope));
}

/** Who may see payloads as they are: an operator, and a worker, who gets them with each claim anyway. */
export function seesPayloads(principal: Principal): boolean {
  return isAllowed(principal, ['work']);
}
