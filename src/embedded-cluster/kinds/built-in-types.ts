/** The types of the built-in kinds, with descriptions for `kubectl explain`. */

import { TypeTable, type Descriptions } from '../../apiserver/schema/notation.ts';
import { META_TYPES } from '../../apiserver/schema/meta-types.ts';
import { EVENT_DESCRIPTIONS, EVENT_TYPES } from '../../apiserver/event-kinds.ts';
import { POD_TYPES } from './pod-types.ts';
import { REVIEW_TYPES } from '../../apiserver/access-review.ts';

/** One table per server: types are parsed when a kind first needs them. */
export function builtInTypes(): TypeTable {
  return new TypeTable([META_TYPES, EVENT_TYPES, CORE_TYPES, GROUP_TYPES, POD_TYPES, REVIEW_TYPES], {
    ...EVENT_DESCRIPTIONS,
    ...DESCRIPTIONS,
  });
}

/** The small kinds of the core group, as kube-apiserver 1.36 serves them. Notation: `schema/notation.ts`. */
const CORE_TYPES = `
Endpoints = metadata:1! meta.ObjectMeta; subsets:2 []EndpointSubset atomic
EndpointSubset = addresses:1 []EndpointAddress atomic; notReadyAddresses:2 []EndpointAddress atomic; ports:3 []EndpointPort atomic
EndpointAddress atomic = ip:1!+ string; hostname:3 string; nodeName:4 *string; targetRef:2 *ObjectReference
EndpointPort atomic = name:1 string; port:2!+ int32; protocol:3 string:v1.Protocol; appProtocol:4 *string
Service = metadata:1! meta.ObjectMeta; spec:2! ServiceSpec; status:3! ServiceStatus
ServiceSpec = ports:1 []ServicePort map(port,protocol=TCP) ~merge(port); selector:2 {}string atomic; clusterIP:3 string; clusterIPs:18 []string atomic; type:4 string:v1.ServiceType; externalIPs:5 []string atomic; sessionAffinity:7 string:v1.ServiceAffinity; loadBalancerIP:8 string; loadBalancerSourceRanges:9 []string atomic; externalName:10 string; externalTrafficPolicy:11 string:v1.ServiceExternalTrafficPolicy; healthCheckNodePort:12 int32; publishNotReadyAddresses:13 bool; sessionAffinityConfig:14 *SessionAffinityConfig; ipFamilies:19 []string:v1.IPFamily atomic; ipFamilyPolicy:17 *string:v1.IPFamilyPolicy; allocateLoadBalancerNodePorts:20 *bool; loadBalancerClass:21 *string; internalTrafficPolicy:22 *string:v1.ServiceInternalTrafficPolicy; trafficDistribution:23 *string
ServicePort = name:1 string; protocol:2 string:v1.Protocol; appProtocol:6 *string; port:3!+ int32; targetPort:4! intOrString; nodePort:5 int32
SessionAffinityConfig = clientIP:1 *ClientIPConfig
ClientIPConfig = timeoutSeconds:1 *int32
ServiceStatus = loadBalancer:1! LoadBalancerStatus; conditions:2 []meta.Condition map(type) ~merge(type)
LoadBalancerStatus = ingress:1 []LoadBalancerIngress atomic
LoadBalancerIngress = ip:1 string; hostname:2 string; ipMode:3 *string:v1.LoadBalancerIPMode; ports:4 []PortStatus atomic
PortStatus = port:1!+ int32; protocol:2!+ string:v1.Protocol; error:3 *string
Namespace = metadata:1! meta.ObjectMeta; spec:2! NamespaceSpec; status:3! NamespaceStatus
NamespaceSpec = finalizers:1 []string:v1.FinalizerName atomic
NamespaceStatus = phase:1 string:v1.NamespacePhase; conditions:2 []NamespaceCondition map(type) ~merge(type)
NamespaceCondition = type:1!+ string:v1.NamespaceConditionType; status:2!+ string:v1.ConditionStatus; lastTransitionTime:4! time; reason:5 string; message:6 string
Secret = metadata:1! meta.ObjectMeta; immutable:5 *bool; data:2 {}bytes; stringData:4 {}string; type:3 string:v1.SecretType
ConfigMap = metadata:1! meta.ObjectMeta; immutable:4 *bool; data:2 {}string; binaryData:3 {}bytes
`;

/** Kinds of other groups. */
const GROUP_TYPES = `
coordination.Lease = metadata:1! meta.ObjectMeta; spec:2! coordination.LeaseSpec
coordination.LeaseSpec = holderIdentity:1 *string; leaseDurationSeconds:2 *int32; acquireTime:3 *microtime; renewTime:4 *microtime; leaseTransitions:5 *int32; strategy:6 *string:v1.CoordinatedLeaseStrategy; preferredHolder:7 *string
discovery.EndpointSlice = metadata:1! meta.ObjectMeta; addressType:4!+ string:v1.AddressType; endpoints:2! []discovery.Endpoint atomic; ports:3! []discovery.EndpointPort atomic
discovery.Endpoint = addresses:1!+ []string set; conditions:2! discovery.EndpointConditions; hostname:3 *string; targetRef:4 *ObjectReference; deprecatedTopology:5 {}string; nodeName:6 *string; zone:7 *string; hints:8 *discovery.EndpointHints
discovery.EndpointConditions = ready:1 *bool; serving:2 *bool; terminating:3 *bool
discovery.EndpointHints = forZones:1 []discovery.ForZone atomic; forNodes:2 []discovery.ForNode atomic
discovery.ForZone = name:1!+ string
discovery.ForNode = name:1!+ string
discovery.EndpointPort atomic = name:1 *string; protocol:2 *string:v1.Protocol; port:3 *int32; appProtocol:4 *string
`;

const DESCRIPTIONS: Descriptions = {
  Endpoints: 'Network addresses that implement the Service of the same name.',
  'Endpoints.metadata': 'Standard object metadata.',
  'Endpoints.subsets': 'Sets of addresses and ports; every address of a set serves every port of it.',
  EndpointSubset: 'Addresses that offer the same ports.',
  'EndpointSubset.addresses': 'Addresses that are ready for traffic.',
  'EndpointSubset.notReadyAddresses': 'Addresses that are not ready and get no traffic.',
  'EndpointSubset.ports': 'The ports on all of these addresses.',
  EndpointAddress: 'A single IP address.',
  'EndpointAddress.ip': 'IPv4 or IPv6 address. Not loopback, not link-local.',
  'EndpointAddress.hostname': 'DNS label of this endpoint.',
  'EndpointAddress.nodeName': 'The node that hosts this endpoint.',
  'EndpointAddress.targetRef': 'The object that provides the endpoint, usually a Pod.',
  EndpointPort: 'A single port.',
  'EndpointPort.name': 'Name of the port; required when there is more than one.',
  'EndpointPort.port': 'Number, 1 to 65535.',
  'EndpointPort.protocol': 'TCP, UDP or SCTP. Defaults to TCP.',
  'EndpointPort.appProtocol': 'The application protocol of the port, as a hint.',
  Service: 'A name and an address for a set of Pods, or for Endpoints without a selector.',
  'Service.metadata': 'Standard object metadata.',
  'Service.spec': 'The desired behaviour of the Service.',
  'Service.status': 'The observed state of the Service.',
  'ServiceSpec.selector':
    'Labels of the Pods that implement the Service. Without a selector, its Endpoints are managed externally.',
  'ServiceSpec.ports': 'The ports of the Service.',
  'ServiceSpec.type': 'ClusterIP, NodePort, LoadBalancer or ExternalName.',
  'ServiceSpec.clusterIP': 'The IP address of the Service; None for a headless Service.',
  Namespace: 'A scope for names.',
  Pod: 'Containers that run together on one node.',
  Secret: 'Confidential data, base64-encoded.',
  'Secret.data': 'Base64-encoded values by key.',
  'Secret.stringData': 'Plain values by key; write-only, merged into data.',
  ConfigMap: 'Configuration data that is not confidential.',
  'discovery.EndpointSlice': 'A subset of the endpoints of a Service.',
  'coordination.Lease': 'The holder and the duration of a lock.',
  'meta.ObjectMeta': 'Metadata that every object has.',
  'meta.ObjectMeta.name': 'Unique within a namespace. Cannot be updated.',
  'meta.ObjectMeta.namespace': 'The scope within which the name is unique. Cannot be updated.',
  'meta.ObjectMeta.labels': 'Keys and values to select objects by.',
  'meta.ObjectMeta.annotations': 'Keys and values that tools store.',
  'meta.ObjectMeta.uid': 'Unique in time and space; set by the server.',
  'meta.ObjectMeta.resourceVersion': 'Internal version, changed by every write; set by the server.',
  'meta.ObjectMeta.finalizers': 'Must be empty before the object is removed.',
  'meta.ObjectMeta.ownerReferences': 'Objects that this object depends on.',
};
