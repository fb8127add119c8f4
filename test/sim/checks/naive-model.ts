/** What the host must hold when everything has settled, computed as simply as possible and without any code of the program. */

import type { KubeObject } from '../../../src/kube/object.ts';
import { hasSelector } from '../world/host-controllers.ts';
import { HOST_NAMESPACE, hostNameOf, VCLUSTER, VIRTUAL_NAMES, type VirtualName } from '../world/names.ts';
import { FORWARD, TEAM } from '../daemon/sim-config.ts';

/** How the program writes the reserved label `release`: sha256("release"), first ten digits. */
const RELEASE_LABEL = 'vcluster.loft.sh/label-vc-x-';

export interface World {
  virtual(plural: string, key: string): KubeObject | undefined;
  host(plural: string, key: string): KubeObject | undefined;
}

/** Parts of a copy that the virtual object alone decides. */
export interface ExpectedCopy {
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly addresses: readonly string[];
}

export function expectedCopy(virtual: KubeObject, isPatched: boolean): ExpectedCopy {
  const { name, namespace = '', uid = '', annotations = {}, labels = {} } = virtual.metadata;
  const copied = Object.entries(annotations).map(([key, value]) => [
    key,
    patchedValue(key, value, isPatched),
  ]);
  return {
    annotations: {
      ...(Object.fromEntries(copied) as Record<string, string>), // pairs of strings
      'vcluster.loft.sh/object-name': name,
      'vcluster.loft.sh/object-namespace': namespace,
      'vcluster.loft.sh/object-uid': uid,
    },
    labels: {
      ...labels,
      'vcluster.loft.sh/managed-by': VCLUSTER,
      'vcluster.loft.sh/namespace': namespace,
    },
    addresses: addressesOf(virtual).map((text) => (isPatched && !text.endsWith(' ') ? `${text}-x` : text)),
  };
}

function patchedValue(key: string, value: string, isPatched: boolean): string {
  if (!isPatched) return value;
  if (key === TEAM) return `team-${value}`;
  return key === FORWARD ? `[${value}]` : value;
}

/** `ip hostname` of every address, in order. */
export function addressesOf(object: KubeObject): string[] {
  const subsets = (object['subsets'] ?? []) as { addresses?: { ip: string; hostname?: string }[] }[]; // Endpoints
  return subsets.flatMap(({ addresses = [] }) =>
    addresses.map(({ ip, hostname = '' }) => `${ip} ${hostname}`),
  );
}

/** The reserved label by its virtual key; a raw one that another client set on the host is the host's. */
export function plainLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(labels)
      .filter(([key]) => key !== 'release')
      .map(([key, value]) => [key.startsWith(RELEASE_LABEL) ? 'release' : key, value]),
  );
}

export function isOptedOut(object: KubeObject | undefined): boolean {
  return object?.metadata.annotations?.['vcluster.loft.sh/controlled-by'] !== undefined;
}

/** The virtual objects that want a copy at their host name. */
export function wantsCopy(name: VirtualName, world: World): boolean {
  const key = `${name.namespace}/${name.name}`;
  const virtual = world.virtual('endpoints', key);
  return virtual !== undefined && !isOptedOut(virtual) && !hasSelector(world.virtual('services', key));
}

/** All virtual names with the same host name. */
export function rivalsOf(name: VirtualName): readonly VirtualName[] {
  return VIRTUAL_NAMES.filter((other) => hostNameOf(other) === hostNameOf(name));
}

export function hostKeyOf(name: VirtualName): string {
  return `${HOST_NAMESPACE}/${hostNameOf(name)}`;
}
