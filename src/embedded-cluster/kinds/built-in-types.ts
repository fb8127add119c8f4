/** The types of the built-in kinds, with what `kubectl explain` says about those that this program works with. */

import { TypeTable, type Descriptions } from '../../apiserver/schema/notation.ts';
import { CORE_TYPES } from './core-types.ts';
import { GROUP_TYPES } from './group-types.ts';
import { META_TYPES } from '../../apiserver/schema/meta-types.ts';
import { POD_TYPES } from './pod-types.ts';
import { REVIEW_TYPES } from '../../apiserver/reviews/review-types.ts';

/** One table per server: types are parsed when a kind first needs them. */
export function builtInTypes(): TypeTable {
  return new TypeTable([META_TYPES, CORE_TYPES, GROUP_TYPES, POD_TYPES, REVIEW_TYPES], DESCRIPTIONS);
}

const DESCRIPTIONS: Descriptions = {
  Endpoints: 'The network addresses that stand behind a Service of the same name.',
  'Endpoints.metadata': 'Name, namespace, labels, annotations and what the server keeps.',
  'Endpoints.subsets': 'Groups of addresses; every address of a group serves every port of that group.',
  EndpointSubset: 'Addresses that offer the same ports.',
  'EndpointSubset.addresses': 'Addresses that are ready for traffic.',
  'EndpointSubset.notReadyAddresses': 'Addresses that are known but must not get traffic yet.',
  'EndpointSubset.ports': 'The ports on all of these addresses.',
  EndpointAddress: 'One IP address.',
  'EndpointAddress.ip': 'IPv4 or IPv6 address. Not loopback, not link-local.',
  'EndpointAddress.hostname': 'DNS label by which the address is known.',
  'EndpointAddress.nodeName': 'The node on which the address lives.',
  'EndpointAddress.targetRef': 'The object that offers the address, usually a Pod.',
  EndpointPort: 'One port.',
  'EndpointPort.name': 'Name of the port; needed when there is more than one.',
  'EndpointPort.port': 'Number, 1 to 65535.',
  'EndpointPort.protocol': 'TCP, UDP or SCTP; TCP when it is not said.',
  'EndpointPort.appProtocol': 'What is spoken on the port, as a hint.',
  ObjectReference: 'Names another object.',
  'ObjectReference.kind': 'Kind of the object.',
  'ObjectReference.namespace': 'Its namespace.',
  'ObjectReference.name': 'Its name.',
  'ObjectReference.uid': 'Its uid.',
  'ObjectReference.apiVersion': 'Group and version of its kind.',
  'ObjectReference.resourceVersion': 'The version that is meant, if any.',
  'ObjectReference.fieldPath': 'A part of the object.',
  Service: 'A name and an address for a set of Pods or of hand-written Endpoints.',
  'Service.metadata': 'Name, namespace, labels, annotations and what the server keeps.',
  'Service.spec': 'What the Service should be.',
  'Service.status': 'What the cluster made of it.',
  'ServiceSpec.selector': 'Labels of the Pods behind it. Without one, somebody writes the Endpoints by hand.',
  'ServiceSpec.ports': 'The ports that it offers.',
  'ServiceSpec.type': 'ClusterIP, NodePort, LoadBalancer or ExternalName.',
  'ServiceSpec.clusterIP': 'Its address; None for a headless Service.',
  Namespace: 'A room of its own for names.',
  Pod: 'Containers that run together.',
  Secret: 'Small data that must not be seen, base64.',
  'Secret.data': 'Keys to base64 values.',
  'Secret.stringData': 'Keys to plain values; write only, goes to data.',
  ConfigMap: 'Small data that anybody may see.',
  Event: 'Something that happened to an object.',
  'discovery.EndpointSlice': 'A part of the addresses behind a Service.',
  'coordination.Lease': 'Who holds a lock, and for how long.',
  'events.Event': 'Something that happened to an object.',
  'meta.ObjectMeta': 'What every object has.',
  'meta.ObjectMeta.name': 'Unique in its namespace; cannot change.',
  'meta.ObjectMeta.namespace': 'Where the name is unique; cannot change.',
  'meta.ObjectMeta.labels': 'Keys and values by which objects are selected.',
  'meta.ObjectMeta.annotations': 'Keys and values for tools.',
  'meta.ObjectMeta.uid': 'Unique for all time; set by the server.',
  'meta.ObjectMeta.resourceVersion': 'Changes with every write; set by the server.',
  'meta.ObjectMeta.finalizers': 'Must be empty before a deleted object goes.',
  'meta.ObjectMeta.ownerReferences': 'Objects without which this one has no purpose.',
};
