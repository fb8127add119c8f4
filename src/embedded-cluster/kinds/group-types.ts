/** Types of the kinds outside the core group, as kube-apiserver 1.36 serves them. Notation: `schema/notation.ts`. */

export const GROUP_TYPES = `
events.Event = metadata:1! meta.ObjectMeta; eventTime:2!+ microtime; series:3 *events.EventSeries; reportingController:4 string; reportingInstance:5 string; action:6 string; reason:7 string; regarding:8! ObjectReference; related:9 *ObjectReference; note:10 string; type:11 string; deprecatedSource:12! EventSource; deprecatedFirstTimestamp:13! time; deprecatedLastTimestamp:14! time; deprecatedCount:15 int32
events.EventSeries = count:1!+ int32; lastObservedTime:2!+ microtime
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
