/** Labels and annotations of Services by which load balancers of the host give out addresses: the twins of `spec.loadBalancerIP`, which most of
 * them have deprecated. Pure. */

import type { Crossing } from '../translate/types.ts';

/** Fields of a Service with addresses that its author chooses. */
export type AddressField = 'externalIPs' | 'loadBalancerIP';

interface BalancerKey {
  readonly program: string;
  /** A key that ends in `/` stands for every key with this prefix. */
  readonly key: string;
  /** `choice`: it asks for an address, for the load balancer of another Service, or to share either. `result`: a program has written what it gave. */
  readonly is: 'choice' | 'result';
  /** Absent: an annotation. */
  readonly member?: 'labels';
}

const BETA = 'service.beta.kubernetes.io/';

/** From the sources and the documentation of these programs, in November 2026. Pools and classes are no addresses: who may use them is configured on
 * the host. */
export const BALANCER_KEYS: readonly BalancerKey[] = [
  ...['metallb.io/', 'metallb.universe.tf/'].flatMap((prefix): BalancerKey[] => [
    { program: 'MetalLB', key: `${prefix}loadBalancerIPs`, is: 'choice' },
    { program: 'MetalLB', key: `${prefix}allow-shared-ip`, is: 'choice' },
    { program: 'MetalLB', key: `${prefix}ip-allocated-from-pool`, is: 'result' },
  ]),
  { program: 'kube-vip', key: 'kube-vip.io/loadbalancerIPs', is: 'choice' }, // its cloud provider writes it, too
  { program: 'kube-vip', key: 'kube-vip.io/requestedIP', is: 'choice' }, // written back with DHCP
  { program: 'kube-vip', key: 'kube-vip.io/hwaddr', is: 'choice' }, // DHCP gives the address of another Service for it
  { program: 'kube-vip', key: 'kube-vip.io/vipHost', is: 'result' },
  { program: 'kube-vip', key: 'kube-vip.io/active-endpoint', is: 'result' },
  { program: 'kube-vip', key: 'kube-vip.io/active-endpoint-ipv6', is: 'result' },
  { program: 'kube-vip', key: 'implementation', is: 'result', member: 'labels' },
  { program: 'kube-vip', key: 'ipam-address', is: 'result', member: 'labels' },
  { program: 'Cilium', key: 'lbipam.cilium.io/', is: 'choice' },
  { program: 'Cilium', key: 'io.cilium/lb-ipam-ips', is: 'choice' },
  { program: 'Cilium', key: 'io.cilium/lb-ipam-sharing-key', is: 'choice' },
  { program: 'Cilium', key: 'io.cilium/lb-ipam-sharing-cross-namespace', is: 'choice' },
  { program: 'PureLB', key: 'purelb.io/addresses', is: 'choice' },
  { program: 'PureLB', key: 'purelb.io/allow-shared-ip', is: 'choice' },
  { program: 'PureLB', key: 'purelb.io/allocated-by', is: 'result' },
  { program: 'PureLB', key: 'purelb.io/allocated-from', is: 'result' },
  { program: 'PureLB', key: 'purelb.io/pool-type', is: 'result' },
  { program: 'PureLB', key: 'purelb.io/announcing-IPv4', is: 'result' },
  { program: 'PureLB', key: 'purelb.io/announcing-IPv6', is: 'result' },
  { program: 'OpenELB', key: 'eip.openelb.kubesphere.io/v1alpha1', is: 'choice' },
  { program: 'LoxiLB', key: 'loxilb.io/staticIP', is: 'choice' },
  { program: 'LoxiLB', key: 'loxilb.io/secondaryIPs', is: 'choice' },
  { program: 'VMware AKO', key: 'ako.vmware.com/load-balancer-ip', is: 'choice' },
  { program: 'VMware AKO', key: 'ako.vmware.com/enable-shared-vip', is: 'choice' },
  { program: 'AWS', key: `${BETA}aws-load-balancer-eip-allocations`, is: 'choice' },
  { program: 'AWS', key: `${BETA}aws-load-balancer-private-ipv4-addresses`, is: 'choice' },
  { program: 'AWS', key: `${BETA}aws-load-balancer-ipv6-addresses`, is: 'choice' },
  { program: 'Azure', key: `${BETA}azure-load-balancer-ipv4`, is: 'choice' },
  { program: 'Azure', key: `${BETA}azure-load-balancer-ipv6`, is: 'choice' },
  { program: 'Azure', key: `${BETA}azure-pip-name`, is: 'choice' },
  { program: 'Azure', key: `${BETA}azure-pip-name-ipv6`, is: 'choice' },
  { program: 'Google', key: 'networking.gke.io/load-balancer-ip-addresses', is: 'choice' },
  { program: 'OpenStack', key: 'loadbalancer.openstack.org/load-balancer-id', is: 'choice' }, // written by it, too
  { program: 'OpenStack', key: 'loadbalancer.openstack.org/load-balancer-address', is: 'choice' }, // written by it, too
  { program: 'Alibaba Cloud', key: `${BETA}alibaba-cloud-loadbalancer-id`, is: 'choice' },
  { program: 'Tencent Cloud', key: 'service.kubernetes.io/tke-existed-lbid', is: 'choice' },
  { program: 'Tencent Cloud', key: 'service.kubernetes.io/loadbalance-id', is: 'result' },
  { program: 'DigitalOcean', key: 'kubernetes.digitalocean.com/load-balancer-id', is: 'choice' }, // written by it, too
  { program: 'Scaleway', key: `${BETA}scw-loadbalancer-id`, is: 'choice' }, // written by it, too
  { program: 'Linode', key: `${BETA}linode-loadbalancer-nodebalancer-id`, is: 'choice' },
  { program: 'Hetzner', key: 'load-balancer.hetzner.cloud/ipv4', is: 'result' },
  { program: 'Hetzner', key: 'load-balancer.hetzner.cloud/ipv6', is: 'result' },
];

/** How a label or annotation of a Service crosses; undefined: as any other. Nothing of the table flows back: the address of one copy would be pinned
 * on the next one. */
export function balancerCrossing(
  member: 'annotations' | 'labels',
  key: string,
  allow: readonly AddressField[],
): Crossing | undefined {
  const row = BALANCER_KEYS.find((one) => (one.member ?? 'annotations') === member && isKey(one, key));
  if (row === undefined) return undefined;
  return row.is === 'choice' && allow.includes('loadBalancerIP') ? 'toHost' : 'never';
}

function isKey(row: BalancerKey, key: string): boolean {
  return row.key.endsWith('/') ? key.startsWith(row.key) : key === row.key;
}
