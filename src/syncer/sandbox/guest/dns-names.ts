/** The DNS name of a Service, taken apart. Runs in the daemon and inside the isolate: no imports. */

export interface ServiceDnsName {
  readonly name: string;
  readonly namespace: string;
  /** `svc` follows the namespace; without it, the name has two parts and may as well be a domain of the internet. */
  readonly hasSvc: boolean;
  /** The DNS name of another Service, given as `name.namespace`. The hostname of an address, the domain and the last dot stay. */
  readonly withService: (service: string) => string;
}

const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** Undefined: a Service has no such DNS name. */
export function parseServiceDnsName(dnsName: string): ServiceDnsName | undefined {
  const dot = dnsName.endsWith('.') ? '.' : '';
  const labels = dnsName.slice(0, dnsName.length - dot.length).split('.');
  // The fourth label first: a Service may be in a namespace that is called svc, no domain begins with it.
  const end = labels[3] === 'svc' ? 3 : 2;
  const hasSvc = labels[end] === 'svc';
  const isService = hasSvc || labels.length === 2;
  if (!isService || !labels.every((label) => DNS_LABEL.test(label))) return undefined;
  const [name = '', namespace = ''] = labels.slice(end - 2, end);
  const withService = (service: string): string =>
    [...labels.slice(0, end - 2), service, ...labels.slice(end)].join('.') + dot;
  return { name, namespace, hasSvc, withService };
}
