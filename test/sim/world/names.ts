/** The names of a simulated world: few, so that they collide, and two virtual objects share a host name. */

import { hash } from 'node:crypto';
import { keyOf, type NamespacedName } from '../../../src/kube/object.ts';

export const VCLUSTER = 'vc';
export const HOST_NAMESPACE = 'team';
/** Of the virtual namespace `shop`, while the configuration maps it. */
export const MAPPED_NAMESPACE = 'team-shop';
export const MAPPED_VIRTUAL_NAMESPACE = 'shop';
export const LEASE_NAME = `endpoint-syncer-${VCLUSTER}`;
export const OWNER_NAME = 'vcluster-root';

/** Endpoints, EndpointSlices and Services have the same names. The last two of them translate to the same host name. */
export const VIRTUAL_NAMES: readonly NamespacedName[] = [
  { namespace: 'shop', name: 'web' },
  { namespace: 'shop', name: 'db' },
  { namespace: 'billing', name: 'web' },
  { namespace: 'c', name: 'a-x-b' },
  { namespace: 'b-x-c', name: 'a' },
];

export const VIRTUAL_NAMESPACES: readonly string[] = [
  ...new Set(VIRTUAL_NAMES.map(({ namespace }) => namespace)),
];

/** Of Secrets and ConfigMaps that annotations name. Host objects called `vc-…` are a virtual cluster's own. */
export const REFERENCE_NAMES: readonly string[] = ['tls', 'ca', 'vc-vc'];

/** The part of a configuration that decides names. */
export interface NameSettings {
  readonly isMapped: boolean;
  readonly naming: 'short' | 'long';
}

/** The rules for names, written down a second time and more simply than in the program; these names are never cut. */
export function hostPlaceOf({ name, namespace }: NamespacedName, { isMapped }: NameSettings): NamespacedName {
  if (isMapped && namespace === MAPPED_VIRTUAL_NAMESPACE) return { namespace: MAPPED_NAMESPACE, name };
  return { namespace: HOST_NAMESPACE, name: `${name}-x-${namespace}-x-${VCLUSTER}` };
}

export function hostKeyOf(name: NamespacedName, settings: NameSettings): string {
  return keyOf(hostPlaceOf(name, settings));
}

/** Where the copy of a referenced object belongs. */
export function referencePlaceOf(name: NamespacedName, settings: NameSettings): NamespacedName {
  const long = hostPlaceOf(name, settings);
  if (long.namespace === MAPPED_NAMESPACE || settings.naming === 'long') return long;
  return { namespace: HOST_NAMESPACE, name: shortName(long.name) };
}

function shortName(long: string): string {
  const hex = hash('sha256', long, 'hex');
  const zeroes = /^(00)*/.exec(hex)?.[0].length ?? 0;
  const digits = '0'.repeat(zeroes / 2) + BigInt(`0x${hex}`).toString(36);
  return `v${digits.slice(0, 13)}`;
}
