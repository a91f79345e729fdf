/**
 * A gate. `resource`: jobs wait behind it. `job`: the soft gate of a job name, and `parent`: the soft gate of all resources
 * of one parent (`webhook` of `webhook/example.com`); both only judge whether there is an outage.
 */
export interface GateRef {
  readonly kind: GateKind;
  readonly name: string;
}

export const gateKinds = ['resource', 'job', 'parent'] as const;
export type GateKind = (typeof gateKinds)[number];

/** The gate of a job: that of its resource, or the soft gate of its name. */
export function gateOfJob({ resource, name }: { readonly resource: string | null; readonly name: string }): GateRef {
  return resource === null ? { kind: 'job', name } : { kind: 'resource', name: resource };
}

export function gateKey({ kind, name }: GateRef): string {
  return `${kind}:${name}`;
}
