/** The few names of a simulated world, chosen so that they meet: two virtual objects share a host name. */

export const VCLUSTER = 'vc';
export const HOST_NAMESPACE = 'team';

export interface VirtualName {
  readonly namespace: string;
  readonly name: string;
}

/** The last two translate to the same host name. */
export const VIRTUAL_NAMES: readonly VirtualName[] = [
  { namespace: 'shop', name: 'web' },
  { namespace: 'shop', name: 'db' },
  { namespace: 'billing', name: 'web' },
  { namespace: 'c', name: 'a-x-b' },
  { namespace: 'b-x-c', name: 'a' },
];

/** The rule for names, written down a second time and more simply than in the program; these names are never hashed. */
export function hostNameOf({ name, namespace }: VirtualName): string {
  return `${name}-x-${namespace}-x-${VCLUSTER}`;
}
