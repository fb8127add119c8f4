/** Types of the small kinds of the core group, as kube-apiserver 1.36 serves them. Notation: `schema/notation.ts`. */

export const CORE_TYPES = `
Endpoints = metadata:1! meta.ObjectMeta; subsets:2 []EndpointSubset atomic
EndpointSubset = addresses:1 []EndpointAddress atomic; notReadyAddresses:2 []EndpointAddress atomic; ports:3 []EndpointPort atomic
EndpointAddress atomic = ip:1!+ string; hostname:3 string; nodeName:4 *string; targetRef:2 *ObjectReference
ObjectReference atomic = kind:1 string; namespace:2 string; name:3 string; uid:4 string:types.UID; apiVersion:5 string; resourceVersion:6 string; fieldPath:7 string
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
Event = metadata:1!+ meta.ObjectMeta; involvedObject:2!+ ObjectReference; reason:3 string; message:4 string; source:5! EventSource; firstTimestamp:6! time; lastTimestamp:7! time; count:8 int32; type:9 string; eventTime:10! microtime; series:11 *EventSeries; action:12 string; related:13 *ObjectReference; reportingComponent:14! string; reportingInstance:15! string
EventSource = component:1 string; host:2 string
EventSeries = count:1 int32; lastObservedTime:2! microtime
`;
