/** What the tenant is told of the addresses behind a Service: that the copies of several objects give it the same one, and that its traffic stays on
 * nodes whose names are those of the virtual cluster. Pure. */

import { canonicalAddress } from '../../base/ip-address.ts';
import { objectField, type JsonObject, type JsonValue } from '../../base/json.ts';
import { asJson, objectKey, type KubeObject, type ObjectKey } from '../../kube/object.ts';
import { EXTERNAL_NAME, isExternallyAccessible, typeOf } from '../../kube/service-rules.ts';
import type { RecordedEvent } from '../../kube/types.ts';

/** An address on the ports of its subset or slice. Objects need not be valid, so it may be no text. */
export interface ServedAddress {
  readonly ip: JsonValue | undefined;
  readonly ports: readonly JsonObject[];
  readonly isReady: boolean;
}

export interface AddressHolder {
  readonly object: KubeObject;
  readonly kind: string;
  readonly served: (object: KubeObject) => Iterable<ServedAddress>;
}

interface Shared {
  readonly ip: string;
  readonly port: JsonValue;
  readonly other: AddressHolder;
  readonly isOwnReady: boolean;
  readonly isOtherReady: boolean;
}

/** kube-proxy keeps one of several equal addresses, by the order of a map, so one that is ready in one object alone gets traffic by chance. Two
 * slices that agree are harmless; an Endpoints beside a slice is most likely a mistake. */
export function sharedAddressNotice(
  service: ObjectKey,
  own: AddressHolder,
  others: Iterable<AddressHolder>,
): RecordedEvent | undefined {
  let duplicate: Shared | undefined;
  for (const shared of sharedAddresses(own, others)) {
    if (shared.isOwnReady !== shared.isOtherReady) return notice(disagreement(service, own, shared));
    if (shared.other.kind !== own.kind) duplicate ??= shared;
  }
  return duplicate && notice(duplication(service, duplicate));
}

function* sharedAddresses(own: AddressHolder, others: Iterable<AddressHolder>): Generator<Shared> {
  let ready: Map<string, Map<string, boolean>> | undefined;
  for (const other of others) {
    ready ??= readinessOf(own);
    for (const { ip, ports, isReady } of other.served(other.object)) {
      const byPort = typeof ip === 'string' ? ready.get(canonicalAddress(ip)) : undefined;
      if (typeof ip !== 'string' || byPort === undefined) continue;
      for (const port of ports) {
        const isOwnReady = byPort.get(portId(port));
        if (isOwnReady === undefined) continue;
        yield { ip, port: port['port'] ?? null, other, isOwnReady, isOtherReady: isReady };
      }
    }
  }
}

/** By canonical address and port. */
function readinessOf({ object, served }: AddressHolder): Map<string, Map<string, boolean>> {
  const found = new Map<string, Map<string, boolean>>();
  for (const { ip, ports, isReady } of served(object)) {
    if (typeof ip !== 'string') continue;
    const key = canonicalAddress(ip);
    const byPort = found.get(key) ?? new Map<string, boolean>();
    for (const port of ports) byPort.set(portId(port), isReady);
    found.set(key, byPort);
  }
  return found;
}

/** kube-proxy keeps addresses by the name and protocol of the port, too. */
function portId({ name, port, protocol }: JsonObject): string {
  return JSON.stringify([name ?? '', port, protocol ?? 'TCP']);
}

function duplication(service: ObjectKey, { ip, port, other }: Shared): string {
  return (
    `Address ${JSON.stringify(ip)} port ${JSON.stringify(port)} of Service "${service}" is also in ${named(other)}. ` +
    'Both are synced, so the host has it twice. Remove it from one of the two.'
  );
}

function disagreement(
  service: ObjectKey,
  own: AddressHolder,
  { ip, port, other, isOwnReady }: Shared,
): string {
  const [ready, notReady] = isOwnReady ? [own, other] : [other, own];
  return (
    `Address ${JSON.stringify(ip)} port ${JSON.stringify(port)} of Service "${service}" is ready in ${named(ready)} and not ready in ` +
    `${named(notReady)}. Both are synced, and kube-proxy takes one of the two by chance, so traffic to this address may stop. ` +
    'Remove it from one of the two.'
  );
}

function named({ object, kind }: AddressHolder): string {
  return `${kind} "${objectKey(object)}"`;
}

function notice(note: string): RecordedEvent {
  return { type: 'Warning', reason: 'DuplicateEndpoints', note };
}

// A traffic policy that keeps traffic on the node of an endpoint.

/** A virtual Service, where the names of nodes are those of the virtual cluster, and no patch takes care of them. */
export type LocalServiceOf = (service: ObjectKey) => KubeObject | undefined;

/** Names in the note. */
const SHOWN_MAX = 3;

/** `nodeNames`: of each endpoint of an object behind the Service; undefined: it has none. `path`: where that object has them. */
export function localTrafficNotice(
  service: KubeObject | undefined,
  nodeNames: readonly (JsonValue | undefined)[],
  path: string,
): RecordedEvent | undefined {
  const [policy] = service === undefined ? [] : localPolicies(service);
  if (service === undefined || policy === undefined || nodeNames.length === 0) return undefined;
  const names = [...new Set(nodeNames)].filter((name) => typeof name === 'string' && name !== '');
  const shown = names.slice(0, SHOWN_MAX).map((name) => JSON.stringify(name));
  const more = names.length > SHOWN_MAX ? `, and ${names.length - SHOWN_MAX} others` : '';
  const what =
    names.length === 0
      ? `no address has one, so no node sends it anywhere`
      : `here they are ${shown.join(', ')}${more}, which are nodes of this cluster; if the host has none of these names, no node sends it anywhere`;
  const note =
    `Service "${objectKey(service)}" has ${policy}: Local, so each node of the host sends its traffic only to the addresses with its own name in ${path}: ${what}. ` +
    `Patch ${path} to names of nodes of the host, or spec.${policy} of the copy of the Service to Cluster.`;
  return { type: 'Warning', reason: 'LocalTrafficPolicy', note };
}

function localPolicies(service: KubeObject): readonly string[] {
  const spec = objectField(asJson(service), 'spec');
  const isLocal = (field: string): boolean => spec[field] === 'Local';
  if (typeOf(spec) === EXTERNAL_NAME) return [];
  return [
    ...(isExternallyAccessible(spec) && isLocal('externalTrafficPolicy') ? ['externalTrafficPolicy'] : []),
    ...(isLocal('internalTrafficPolicy') ? ['internalTrafficPolicy'] : []),
  ];
}
