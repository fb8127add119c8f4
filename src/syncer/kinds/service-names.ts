/** DNS names of Services in objects: the `externalName` of a Service, the addresses of an FQDN slice. As they are, they would lead to Services of the
 * host. Pure. */

import type { JsonValue } from '../../base/json.ts';
import { keyOf, SERVICES, type ObjectKey } from '../../kube/object.ts';
import type { RecordedEvent } from '../../kube/types.ts';
import { parseServiceDnsName, type ServiceDnsName } from '../../expressions/guest/globals.ts';
import type { NameTranslator } from '../translate/types.ts';
import { NO_EFFECT, type GateReason, type NeverCopied } from './kind.ts';

/** A DNS name in an object, and where. */
export interface NameAt {
  readonly name: JsonValue | undefined;
  readonly path: string;
}

const WHY_NEVER: Readonly<Partial<Record<GateReason, string>>> = {
  'selects Pods': 'it has a selector, and no Pods are synced that it could select on the host',
  'namespace is excluded': 'endpointSyncer.namespaces excludes its namespace',
  'not selected': 'its labels do not match endpointSyncer.selector',
};

/** The copy names one that no one creates, so it leads nowhere. */
export function deadNameNotice(
  names: readonly NameAt[],
  neverCopied: NeverCopied,
): RecordedEvent | undefined {
  for (const { name, path } of names) {
    const service = serviceKeyIn(name);
    const reason = service === undefined ? undefined : neverCopied(service);
    if (reason === undefined) continue;
    const note =
      `${path} names Service "${service}", which is not copied to the host: ${WHY_NEVER[reason] ?? reason}. The copy of this object leads nowhere. ` +
      'Name an address that the host can reach, or a Service whose Endpoints or EndpointSlices are synced.';
    return { ...NO_EFFECT, note };
  }
  return undefined;
}

/** Index on virtual objects: the keys of the Services that they name. */
export const BY_NAMED_SERVICE = 'namedService';

export function serviceKeysIn(names: readonly NameAt[]): readonly ObjectKey[] {
  return names.flatMap(({ name }) => serviceKeyIn(name) ?? []);
}

function serviceKeyIn(dnsName: JsonValue | undefined): ObjectKey | undefined {
  const service = namedService(dnsName);
  return service && keyOf({ namespace: service.namespace, name: service.name });
}

/** Undefined: a name without `.svc`, which may be a domain of the internet. */
export function namedService(dnsName: JsonValue | undefined): ServiceDnsName | undefined {
  const service = typeof dnsName === 'string' ? parseServiceDnsName(dnsName) : undefined;
  return service?.hasSvc === true ? service : undefined;
}

/** The name of the copy; undefined: it names no Service, or one in a namespace that is not mapped ({@link unmappedNamespaceOf}). */
export function serviceNameToHost(dnsName: JsonValue | undefined, names: NameTranslator): string | undefined {
  const service = namedService(dnsName);
  const host = service && names.referenceToHost(service, SERVICES);
  return host && service?.withService(`${host.name}.${host.namespace}`);
}

/** The namespace of the Service that it names, if that has none on the host. */
export function unmappedNamespaceOf(
  dnsName: JsonValue | undefined,
  names: NameTranslator,
): string | undefined {
  const service = namedService(dnsName);
  const isUnmapped = service !== undefined && names.referenceToHost(service, SERVICES) === undefined;
  return isUnmapped ? service.namespace : undefined;
}

/** By the name rule; undefined: the virtual cluster has no such Service. */
export function serviceNameToVirtual(dnsName: JsonValue, names: NameTranslator): string | undefined {
  const service = namedService(dnsName);
  const [virtual, ...others] = service === undefined ? [] : names.toVirtualCandidates(service);
  return virtual === undefined || others.length > 0
    ? undefined
    : service?.withService(`${virtual.name}.${virtual.namespace}`);
}
