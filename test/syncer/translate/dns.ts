/** `virtualToHostDNS` of the sandbox in terms of the name translator, to compare with what runs there. */

import { DNS_LABEL_PATTERN } from '../../../src/kube/names.ts';
import { SERVICES } from '../../../src/kube/object.ts';
import type { NameTranslator } from '../../../src/syncer/translate/types.ts';

const SERVICE_DNS = new RegExp(
  `^(?<name>${DNS_LABEL_PATTERN})\\.(?<namespace>${DNS_LABEL_PATTERN})\\.svc(?<domain>\\.[^.\\s]+(?:\\.[^.\\s]+)*\\.?)?$`,
);

/** `<name>.<namespace>.svc[.<domain>]` of the host's Service. A name of another form, or of a namespace that is not mapped, is returned unchanged. */
export function virtualToHostDNS(dnsName: string, names: NameTranslator): string {
  const parts = SERVICE_DNS.exec(dnsName)?.groups;
  if (parts === undefined) return dnsName;
  const { name = '', namespace = '', domain = '' } = parts;
  const host = names.referenceToHost({ name, namespace }, SERVICES);
  return host === undefined ? dnsName : `${host.name}.${host.namespace}.svc${domain}`;
}
