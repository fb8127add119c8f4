/** Translates DNS names of virtual Services to those of their host Services. */

import { SERVICES } from '../../../kube/object.ts';
import type { NameTranslator } from '../types.ts';

const LABEL = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?';
const SERVICE_DNS = new RegExp(`^(${LABEL})\\.(${LABEL})\\.svc(\\.[^.\\s]+(?:\\.[^.\\s]+)*\\.?)?$`);

/** `<name>.<namespace>.svc[.<domain>]` of the host's Service. A name of another form, or of a namespace that is not mapped, is returned unchanged. */
export function virtualToHostDNS(dnsName: string, names: NameTranslator): string {
  const match = SERVICE_DNS.exec(dnsName);
  if (match === null) return dnsName;
  const [, name = '', namespace = '', domain = ''] = match;
  const host = names.referenceToHost({ name, namespace }, SERVICES);
  return host === undefined ? dnsName : `${host.name}.${host.namespace}.svc${domain}`;
}
