/** DNS names of Services in objects: the `externalName` of a Service, the addresses of an FQDN slice. As they are, they would lead to Services of the
 * host. Pure. */

import type { JsonValue } from '../../base/json.ts';
import { SERVICES } from '../../kube/object.ts';
import { parseServiceDnsName, type ServiceDnsName } from '../sandbox/guest/globals.ts';
import type { NameTranslator } from '../translate/types.ts';

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
