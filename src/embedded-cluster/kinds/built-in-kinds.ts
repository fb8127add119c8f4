/** The table of kinds that an embedded cluster serves. */

import type { Authorizer } from '../../apiserver/request/request-info.ts';
import {
  type ResourceDefinition,
  defineResource,
  DefinitionTable,
} from '../../apiserver/objects/resource-definition.ts';
import { selfSubjectAccessReviews, REVIEW_TYPES } from '../../apiserver/access-review.ts';
import { configMaps, secrets } from './config-data.ts';
import { endpointSlices, endpoints } from './endpoints.ts';
import { coreEvents, groupEvents, EVENT_TYPES } from '../../apiserver/event-kinds.ts';
import { namespaces } from './namespace.ts';
import { pods } from './pod.ts';
import { strategicMerge } from '../strategic-merge.ts';
import { services } from './service.ts';
import { invalidValue, type FieldError } from '../../apiserver/status.ts';
import { TypeTable, META_TYPES } from '../../apiserver/schema/object-schema.ts';
import { type JsonObject, objectField, text } from '../../base/json.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { subdomainProblem } from '../../kube/names.ts';

export function builtInKinds(
  authorizer: Authorizer,
  others: readonly ResourceDefinition[] = [],
): DefinitionTable {
  const types = builtInTypes();
  const builtIn = [
    configMaps(types),
    endpoints(types),
    coreEvents(types),
    namespaces(types),
    pods(types),
    secrets(types),
    services(types),
    selfSubjectAccessReviews(types, authorizer),
    leases(types),
    endpointSlices(types),
    groupEvents(types),
  ];
  return new DefinitionTable([...builtIn.map((one) => ({ ...one, strategicMerge })), ...others]);
}

// Leases of coordination.k8s.io.

function leases(types: TypeTable): ResourceDefinition {
  return defineResource({
    group: 'coordination.k8s.io',
    version: 'v1',
    kind: 'Lease',
    plural: 'leases',
    singular: 'lease',
    isNamespaced: true,
    schema: types.get('coordination.Lease'),
    checkName: subdomainProblem,
    strategy: { allowsCreateOnUpdate: true },
    allowsUnconditionalUpdate: false,
    columns: [
      NAME_COLUMN,
      textColumn('Holder', 'The holder of the lease.', (object) =>
        text(objectField(object, 'spec'), 'holderIdentity'),
      ),
      AGE_COLUMN,
    ],
    validate,
  });
}

function validate(object: JsonObject): FieldError[] {
  const spec = objectField(object, 'spec');
  const errors: FieldError[] = [];
  for (const [field, least, detail] of [
    ['leaseDurationSeconds', 1, 'must be greater than 0'],
    ['leaseTransitions', 0, 'must be greater than or equal to 0'],
  ] as const) {
    const value = spec[field];
    if (typeof value === 'number' && value < least) errors.push(invalidValue(`spec.${field}`, value, detail));
  }
  return errors;
}

// The types of the built-in kinds, with descriptions for `kubectl explain`.

/** One table per server: types are parsed when a kind first needs them. */
export function builtInTypes(): TypeTable {
  return new TypeTable([
    META_TYPES,
    EVENT_TYPES,
    CORE_TYPES,
    GROUP_TYPES,
    POD_TYPES,
    REVIEW_TYPES,
    DESCRIPTIONS,
  ]);
}

/** The small kinds of the core group, as kube-apiserver 1.36 serves them. Notation: `schema/object-schema.ts`. */
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

const DESCRIPTIONS = `
Endpoints: Network addresses that implement the Service of the same name.
Endpoints.metadata: Standard object metadata.
Endpoints.subsets: Sets of addresses and ports; every address of a set serves every port of it.
EndpointSubset: Addresses that offer the same ports.
EndpointSubset.addresses: Addresses that are ready for traffic.
EndpointSubset.notReadyAddresses: Addresses that are not ready and get no traffic.
EndpointSubset.ports: The ports on all of these addresses.
EndpointAddress: A single IP address.
EndpointAddress.ip: IPv4 or IPv6 address. Not loopback, not link-local.
EndpointAddress.hostname: DNS label of this endpoint.
EndpointAddress.nodeName: The node that hosts this endpoint.
EndpointAddress.targetRef: The object that provides the endpoint, usually a Pod.
EndpointPort: A single port.
EndpointPort.name: Name of the port; required when there is more than one.
EndpointPort.port: Number, 1 to 65535.
EndpointPort.protocol: TCP, UDP or SCTP. Defaults to TCP.
EndpointPort.appProtocol: The application protocol of the port, as a hint.
Service: A name and an address for a set of Pods, or for Endpoints without a selector.
Service.metadata: Standard object metadata.
Service.spec: The desired behaviour of the Service.
Service.status: The observed state of the Service.
ServiceSpec.selector: Labels of the Pods that implement the Service. Without a selector, its Endpoints are managed externally.
ServiceSpec.ports: The ports of the Service.
ServiceSpec.type: ClusterIP, NodePort, LoadBalancer or ExternalName.
ServiceSpec.clusterIP: The IP address of the Service; None for a headless Service.
Namespace: A scope for names.
Pod: Containers that run together on one node.
Secret: Confidential data, base64-encoded.
Secret.data: Base64-encoded values by key.
Secret.stringData: Plain values by key; write-only, merged into data.
ConfigMap: Configuration data that is not confidential.
discovery.EndpointSlice: A subset of the endpoints of a Service.
coordination.Lease: The holder and the duration of a lock.
meta.ObjectMeta: Metadata that every object has.
meta.ObjectMeta.name: Unique within a namespace. Cannot be updated.
meta.ObjectMeta.namespace: The scope within which the name is unique. Cannot be updated.
meta.ObjectMeta.labels: Keys and values to select objects by.
meta.ObjectMeta.annotations: Keys and values that tools store.
meta.ObjectMeta.uid: Unique in time and space; set by the server.
meta.ObjectMeta.resourceVersion: Internal version, changed by every write; set by the server.
meta.ObjectMeta.finalizers: Must be empty before the object is removed.
meta.ObjectMeta.ownerReferences: Objects that this object depends on.
`;

// Types of Pod, as kube-apiserver 1.36 serves them. Notation: `schema/object-schema.ts`.

const POD_TYPES = `
Pod = metadata:1! meta.ObjectMeta; spec:2! PodSpec; status:3! PodStatus
PodSpec = volumes:1 []Volume map(name) ~merge,retainKeys(name); initContainers:20 []Container map(name) ~merge(name); containers:2!+ []Container map(name) ~merge(name); ephemeralContainers:34 []EphemeralContainer map(name) ~merge(name); restartPolicy:3 string:v1.RestartPolicy; terminationGracePeriodSeconds:4 *int64; activeDeadlineSeconds:5 *int64; dnsPolicy:6 string:v1.DNSPolicy; nodeSelector:7 {}string atomic; serviceAccountName:8 string; serviceAccount:9 string; automountServiceAccountToken:21 *bool; nodeName:10 string; hostNetwork:11 bool; hostPID:12 bool; hostIPC:13 bool; shareProcessNamespace:27 *bool; securityContext:14 *PodSecurityContext; imagePullSecrets:15 []LocalObjectReference map(name) ~merge(name); hostname:16 string; subdomain:17 string; affinity:18 *Affinity; schedulerName:19 string; tolerations:22 []Toleration atomic; hostAliases:23 []HostAlias map(ip) ~merge(ip); priorityClassName:24 string; priority:25 *int32; dnsConfig:26 *PodDNSConfig; readinessGates:28 []PodReadinessGate atomic; runtimeClassName:29 *string; enableServiceLinks:30 *bool; preemptionPolicy:31 *string:v1.PreemptionPolicy; overhead:32 {}quantity; topologySpreadConstraints:33 []TopologySpreadConstraint map(topologyKey,whenUnsatisfiable) ~merge(topologyKey); setHostnameAsFQDN:35 *bool; os:36 *PodOS; hostUsers:37 *bool; schedulingGates:38 []PodSchedulingGate map(name) ~merge(name); resourceClaims:39 []PodResourceClaim map(name) ~merge,retainKeys(name); resources:40 *ResourceRequirements; hostnameOverride:41 *string; schedulingGroup:43 *PodSchedulingGroup
Volume = name:1!+ string; hostPath:2/1 *HostPathVolumeSource; emptyDir:2/2 *EmptyDirVolumeSource; gcePersistentDisk:2/3 *GCEPersistentDiskVolumeSource; awsElasticBlockStore:2/4 *AWSElasticBlockStoreVolumeSource; gitRepo:2/5 *GitRepoVolumeSource; secret:2/6 *SecretVolumeSource; nfs:2/7 *NFSVolumeSource; iscsi:2/8 *ISCSIVolumeSource; glusterfs:2/9 *GlusterfsVolumeSource; persistentVolumeClaim:2/10 *PersistentVolumeClaimVolumeSource; rbd:2/11 *RBDVolumeSource; flexVolume:2/12 *FlexVolumeSource; cinder:2/13 *CinderVolumeSource; cephfs:2/14 *CephFSVolumeSource; flocker:2/15 *FlockerVolumeSource; downwardAPI:2/16 *DownwardAPIVolumeSource; fc:2/17 *FCVolumeSource; azureFile:2/18 *AzureFileVolumeSource; configMap:2/19 *ConfigMapVolumeSource; vsphereVolume:2/20 *VsphereVirtualDiskVolumeSource; quobyte:2/21 *QuobyteVolumeSource; azureDisk:2/22 *AzureDiskVolumeSource; photonPersistentDisk:2/23 *PhotonPersistentDiskVolumeSource; projected:2/26 *ProjectedVolumeSource; portworxVolume:2/24 *PortworxVolumeSource; scaleIO:2/25 *ScaleIOVolumeSource; storageos:2/27 *StorageOSVolumeSource; csi:2/28 *CSIVolumeSource; ephemeral:2/29 *EphemeralVolumeSource; image:2/30 *ImageVolumeSource
HostPathVolumeSource = path:1!+ string; type:2 *string:v1.HostPathType
EmptyDirVolumeSource = medium:1 string:v1.StorageMedium; sizeLimit:2 *quantity
GCEPersistentDiskVolumeSource = pdName:1!+ string; fsType:2 string; partition:3 int32; readOnly:4 bool
AWSElasticBlockStoreVolumeSource = volumeID:1!+ string; fsType:2 string; partition:3 int32; readOnly:4 bool
GitRepoVolumeSource = repository:1!+ string; revision:2 string; directory:3 string
SecretVolumeSource = secretName:1 string; items:2 []KeyToPath atomic; defaultMode:3 *int32; optional:4 *bool
KeyToPath = key:1!+ string; path:2!+ string; mode:3 *int32
NFSVolumeSource = server:1!+ string; path:2!+ string; readOnly:3 bool
ISCSIVolumeSource = targetPortal:1!+ string; iqn:2!+ string; lun:3!+ int32; iscsiInterface:4 string; fsType:5 string; readOnly:6 bool; portals:7 []string atomic; chapAuthDiscovery:8 bool; chapAuthSession:11 bool; secretRef:10 *LocalObjectReference; initiatorName:12 *string
LocalObjectReference atomic = name:1 string
GlusterfsVolumeSource = endpoints:1!+ string; path:2!+ string; readOnly:3 bool
PersistentVolumeClaimVolumeSource = claimName:1!+ string; readOnly:2 bool
RBDVolumeSource = monitors:1!+ []string atomic; image:2!+ string; fsType:3 string; pool:4 string; user:5 string; keyring:6 string; secretRef:7 *LocalObjectReference; readOnly:8 bool
FlexVolumeSource = driver:1!+ string; fsType:2 string; secretRef:3 *LocalObjectReference; readOnly:4 bool; options:5 {}string
CinderVolumeSource = volumeID:1!+ string; fsType:2 string; readOnly:3 bool; secretRef:4 *LocalObjectReference
CephFSVolumeSource = monitors:1!+ []string atomic; path:2 string; user:3 string; secretFile:4 string; secretRef:5 *LocalObjectReference; readOnly:6 bool
FlockerVolumeSource = datasetName:1 string; datasetUUID:2 string
DownwardAPIVolumeSource = items:1 []DownwardAPIVolumeFile atomic; defaultMode:2 *int32
DownwardAPIVolumeFile = path:1!+ string; fieldRef:2 *ObjectFieldSelector; resourceFieldRef:3 *ResourceFieldSelector; mode:4 *int32
ObjectFieldSelector atomic = apiVersion:1 string; fieldPath:2!+ string
ResourceFieldSelector atomic = containerName:1 string; resource:2!+ string; divisor:3! quantity
FCVolumeSource = targetWWNs:1 []string atomic; lun:2 *int32; fsType:3 string; readOnly:4 bool; wwids:5 []string atomic
AzureFileVolumeSource = secretName:1!+ string; shareName:2!+ string; readOnly:3 bool
ConfigMapVolumeSource = name:1/1 string; items:2 []KeyToPath atomic; defaultMode:3 *int32; optional:4 *bool
VsphereVirtualDiskVolumeSource = volumePath:1!+ string; fsType:2 string; storagePolicyName:3 string; storagePolicyID:4 string
QuobyteVolumeSource = registry:1!+ string; volume:2!+ string; readOnly:3 bool; user:4 string; group:5 string; tenant:6 string
AzureDiskVolumeSource = diskName:1!+ string; diskURI:2!+ string; cachingMode:3 *string:v1.AzureDataDiskCachingMode; fsType:4 *string; readOnly:5 *bool; kind:6 *string:v1.AzureDataDiskKind
PhotonPersistentDiskVolumeSource = pdID:1!+ string; fsType:2 string
ProjectedVolumeSource = sources:1! []VolumeProjection atomic; defaultMode:2 *int32
VolumeProjection = secret:1 *SecretProjection; downwardAPI:2 *DownwardAPIProjection; configMap:3 *ConfigMapProjection; serviceAccountToken:4 *ServiceAccountTokenProjection; clusterTrustBundle:5 *ClusterTrustBundleProjection; podCertificate:6 *PodCertificateProjection
SecretProjection = name:1/1 string; items:2 []KeyToPath atomic; optional:4 *bool
DownwardAPIProjection = items:1 []DownwardAPIVolumeFile atomic
ConfigMapProjection = name:1/1 string; items:2 []KeyToPath atomic; optional:4 *bool
ServiceAccountTokenProjection = audience:1 string; expirationSeconds:2 *int64; path:3!+ string
ClusterTrustBundleProjection = name:1 *string; signerName:2 *string; labelSelector:3 *meta.LabelSelector; optional:5 *bool; path:4!+ string
PodCertificateProjection = signerName:1+ string; keyType:2+ string; maxExpirationSeconds:3 *int32; credentialBundlePath:4 string; keyPath:5 string; certificateChainPath:6 string; userAnnotations:7 {}string
PortworxVolumeSource = volumeID:1!+ string; fsType:2 string; readOnly:3 bool
ScaleIOVolumeSource = gateway:1!+ string; system:2!+ string; secretRef:3!+ *LocalObjectReference; sslEnabled:4 bool; protectionDomain:5 string; storagePool:6 string; storageMode:7 string; volumeName:8 string; fsType:9 string; readOnly:10 bool
StorageOSVolumeSource = volumeName:1 string; volumeNamespace:2 string; fsType:3 string; readOnly:4 bool; secretRef:5 *LocalObjectReference
CSIVolumeSource = driver:1!+ string; readOnly:2 *bool; fsType:3 *string; volumeAttributes:4 {}string; nodePublishSecretRef:5 *LocalObjectReference
EphemeralVolumeSource = volumeClaimTemplate:1 *PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate = metadata:1! meta.ObjectMeta; spec:2!+ PersistentVolumeClaimSpec
PersistentVolumeClaimSpec = accessModes:1 []string:v1.PersistentVolumeAccessMode atomic; selector:4 *meta.LabelSelector; resources:2! VolumeResourceRequirements; volumeName:3 string; storageClassName:5 *string; volumeMode:6 *string:v1.PersistentVolumeMode; dataSource:7 *TypedLocalObjectReference; dataSourceRef:8 *TypedObjectReference; volumeAttributesClassName:9 *string
VolumeResourceRequirements = limits:1 {}quantity; requests:2 {}quantity
TypedLocalObjectReference atomic = apiGroup:1! *string; kind:2!+ string; name:3!+ string
TypedObjectReference = apiGroup:1! *string; kind:2!+ string; name:3!+ string; namespace:4 *string
ImageVolumeSource = reference:1 string; pullPolicy:2 string:v1.PullPolicy
Container = name:1!+ string; image:2 string; command:3 []string atomic; args:4 []string atomic; workingDir:5 string; ports:6 []ContainerPort map(containerPort,protocol=TCP) ~merge(containerPort); envFrom:19 []EnvFromSource atomic; env:7 []EnvVar map(name) ~merge(name); resources:8! ResourceRequirements; resizePolicy:23 []ContainerResizePolicy atomic; restartPolicy:24 *string:v1.ContainerRestartPolicy; restartPolicyRules:25 []ContainerRestartRule atomic; volumeMounts:9 []VolumeMount map(mountPath) ~merge(mountPath); volumeDevices:21 []VolumeDevice map(devicePath) ~merge(devicePath); livenessProbe:10 *Probe; readinessProbe:11 *Probe; startupProbe:22 *Probe; lifecycle:12 *Lifecycle; terminationMessagePath:13 string; terminationMessagePolicy:20 string:v1.TerminationMessagePolicy; imagePullPolicy:14 string:v1.PullPolicy; securityContext:15 *SecurityContext; stdin:16 bool; stdinOnce:17 bool; tty:18 bool
ContainerPort = name:1 string; hostPort:2 int32; containerPort:3!+ int32; protocol:4 string:v1.Protocol; hostIP:5 string
EnvFromSource = prefix:1 string; configMapRef:2 *ConfigMapEnvSource; secretRef:3 *SecretEnvSource
ConfigMapEnvSource = name:1/1 string; optional:2 *bool
SecretEnvSource = name:1/1 string; optional:2 *bool
EnvVar = name:1!+ string; value:2 string; valueFrom:3 *EnvVarSource
EnvVarSource = fieldRef:1 *ObjectFieldSelector; resourceFieldRef:2 *ResourceFieldSelector; configMapKeyRef:3 *ConfigMapKeySelector; secretKeyRef:4 *SecretKeySelector; fileKeyRef:5 *FileKeySelector
ConfigMapKeySelector atomic = name:1/1 string; key:2!+ string; optional:3 *bool
SecretKeySelector atomic = name:1/1 string; key:2!+ string; optional:3 *bool
FileKeySelector atomic = volumeName:1!+ string; path:2!+ string; key:3!+ string; optional:4 *bool
ResourceRequirements = limits:1 {}quantity; requests:2 {}quantity; claims:3 []ResourceClaim map(name)
ResourceClaim = name:1!+ string; request:2 string
ContainerResizePolicy = resourceName:1!+ string:v1.ResourceName; restartPolicy:2!+ string:v1.ResourceResizeRestartPolicy
ContainerRestartRule = action:1+ string:v1.ContainerRestartRuleAction; exitCodes:2 *ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes = operator:1+ string:v1.ContainerRestartRuleOnExitCodesOperator; values:2 []int32 set
VolumeMount = name:1!+ string; readOnly:2 bool; recursiveReadOnly:7 *string:v1.RecursiveReadOnlyMode; mountPath:3!+ string; subPath:4 string; mountPropagation:5 *string:v1.MountPropagationMode; subPathExpr:6 string
VolumeDevice = name:1!+ string; devicePath:2!+ string
Probe = exec:1/1 *ExecAction; httpGet:1/2 *HTTPGetAction; tcpSocket:1/3 *TCPSocketAction; grpc:1/4 *GRPCAction; initialDelaySeconds:2 int32; timeoutSeconds:3 int32; periodSeconds:4 int32; successThreshold:5 int32; failureThreshold:6 int32; terminationGracePeriodSeconds:7 *int64
ExecAction = command:1 []string atomic
HTTPGetAction = path:1 string; port:2!+ intOrString; host:3 string; scheme:4 string:v1.URIScheme; httpHeaders:5 []HTTPHeader atomic
HTTPHeader = name:1!+ string; value:2!+ string
TCPSocketAction = port:1!+ intOrString; host:2 string
GRPCAction = port:1!+ int32; service:2! *string
Lifecycle = postStart:1 *LifecycleHandler; preStop:2 *LifecycleHandler; stopSignal:3 *string:v1.Signal
LifecycleHandler = exec:1 *ExecAction; httpGet:2 *HTTPGetAction; tcpSocket:3 *TCPSocketAction; sleep:4 *SleepAction
SleepAction = seconds:1!+ int64
SecurityContext = capabilities:1 *Capabilities; privileged:2 *bool; seLinuxOptions:3 *SELinuxOptions; windowsOptions:10 *WindowsSecurityContextOptions; runAsUser:4 *int64; runAsGroup:8 *int64; runAsNonRoot:5 *bool; readOnlyRootFilesystem:6 *bool; allowPrivilegeEscalation:7 *bool; procMount:9 *string:v1.ProcMountType; seccompProfile:11 *SeccompProfile; appArmorProfile:12 *AppArmorProfile
Capabilities = add:1 []string:v1.Capability atomic; drop:2 []string:v1.Capability atomic
SELinuxOptions = user:1 string; role:2 string; type:3 string; level:4 string
WindowsSecurityContextOptions = gmsaCredentialSpecName:1 *string; gmsaCredentialSpec:2 *string; runAsUserName:3 *string; hostProcess:4 *bool
SeccompProfile = type:1!+ string:v1.SeccompProfileType; localhostProfile:2 *string
AppArmorProfile = type:1!+ string:v1.AppArmorProfileType; localhostProfile:2 *string
EphemeralContainer = name:1/1!+ string; image:1/2 string; command:1/3 []string atomic; args:1/4 []string atomic; workingDir:1/5 string; ports:1/6 []ContainerPort map(containerPort,protocol=TCP) ~merge(containerPort); envFrom:1/19 []EnvFromSource atomic; env:1/7 []EnvVar map(name) ~merge(name); resources:1/8! ResourceRequirements; resizePolicy:1/23 []ContainerResizePolicy atomic; restartPolicy:1/24 *string:v1.ContainerRestartPolicy; restartPolicyRules:1/25 []ContainerRestartRule atomic; volumeMounts:1/9 []VolumeMount map(mountPath) ~merge(mountPath); volumeDevices:1/21 []VolumeDevice map(devicePath) ~merge(devicePath); livenessProbe:1/10 *Probe; readinessProbe:1/11 *Probe; startupProbe:1/22 *Probe; lifecycle:1/12 *Lifecycle; terminationMessagePath:1/13 string; terminationMessagePolicy:1/20 string:v1.TerminationMessagePolicy; imagePullPolicy:1/14 string:v1.PullPolicy; securityContext:1/15 *SecurityContext; stdin:1/16 bool; stdinOnce:1/17 bool; tty:1/18 bool; targetContainerName:2 string
PodSecurityContext = seLinuxOptions:1 *SELinuxOptions; windowsOptions:8 *WindowsSecurityContextOptions; runAsUser:2 *int64; runAsGroup:6 *int64; runAsNonRoot:3 *bool; supplementalGroups:4 []int64 atomic; supplementalGroupsPolicy:12 *string:v1.SupplementalGroupsPolicy; fsGroup:5 *int64; sysctls:7 []Sysctl atomic; fsGroupChangePolicy:9 *string:v1.PodFSGroupChangePolicy; seccompProfile:10 *SeccompProfile; appArmorProfile:11 *AppArmorProfile; seLinuxChangePolicy:13 *string:v1.PodSELinuxChangePolicy
Sysctl = name:1!+ string; value:2!+ string
Affinity = nodeAffinity:1 *NodeAffinity; podAffinity:2 *PodAffinity; podAntiAffinity:3 *PodAntiAffinity
NodeAffinity = requiredDuringSchedulingIgnoredDuringExecution:1 *NodeSelector; preferredDuringSchedulingIgnoredDuringExecution:2 []PreferredSchedulingTerm atomic
NodeSelector atomic = nodeSelectorTerms:1!+ []NodeSelectorTerm atomic
NodeSelectorTerm atomic = matchExpressions:1 []NodeSelectorRequirement atomic; matchFields:2 []NodeSelectorRequirement atomic
NodeSelectorRequirement = key:1!+ string; operator:2!+ string:v1.NodeSelectorOperator; values:3 []string atomic
PreferredSchedulingTerm = weight:1!+ int32; preference:2!+ NodeSelectorTerm
PodAffinity = requiredDuringSchedulingIgnoredDuringExecution:1 []PodAffinityTerm atomic; preferredDuringSchedulingIgnoredDuringExecution:2 []WeightedPodAffinityTerm atomic
PodAffinityTerm = labelSelector:1 *meta.LabelSelector; namespaces:2 []string atomic; topologyKey:3!+ string; namespaceSelector:4 *meta.LabelSelector; matchLabelKeys:5 []string atomic; mismatchLabelKeys:6 []string atomic
WeightedPodAffinityTerm = weight:1!+ int32; podAffinityTerm:2!+ PodAffinityTerm
PodAntiAffinity = requiredDuringSchedulingIgnoredDuringExecution:1 []PodAffinityTerm atomic; preferredDuringSchedulingIgnoredDuringExecution:2 []WeightedPodAffinityTerm atomic
Toleration = key:1 string; operator:2 string:v1.TolerationOperator; value:3 string; effect:4 string:v1.TaintEffect; tolerationSeconds:5 *int64
HostAlias = ip:1!+ string; hostnames:2 []string atomic
PodDNSConfig = nameservers:1 []string atomic; searches:2 []string atomic; options:3 []PodDNSConfigOption atomic
PodDNSConfigOption = name:1 string; value:2 *string
PodReadinessGate = conditionType:1!+ string:v1.PodConditionType
TopologySpreadConstraint = maxSkew:1!+ int32; topologyKey:2!+ string; whenUnsatisfiable:3!+ string:v1.UnsatisfiableConstraintAction; labelSelector:4 *meta.LabelSelector; minDomains:5 *int32; nodeAffinityPolicy:6 *string:v1.NodeInclusionPolicy; nodeTaintsPolicy:7 *string:v1.NodeInclusionPolicy; matchLabelKeys:8 []string atomic
PodOS = name:1!+ string:v1.OSName
PodSchedulingGate = name:1!+ string
PodResourceClaim = name:1!+ string; resourceClaimName:3 *string; resourceClaimTemplateName:4 *string
PodSchedulingGroup = podGroupName:1 *string
PodStatus = observedGeneration:17 int64; phase:1 string:v1.PodPhase; conditions:2 []PodCondition map(type) ~merge(type); message:3 string; reason:4 string; nominatedNodeName:11 string; hostIP:5 string; hostIPs:16 []HostIP atomic ~merge(ip); podIP:6 string; podIPs:12 []PodIP map(ip) ~merge(ip); startTime:7 *time; initContainerStatuses:10 []ContainerStatus atomic; containerStatuses:8 []ContainerStatus atomic; qosClass:9 string:v1.PodQOSClass; ephemeralContainerStatuses:13 []ContainerStatus atomic; resize:14 string:v1.PodResizeStatus; resourceClaimStatuses:15 []PodResourceClaimStatus map(name) ~merge,retainKeys(name); extendedResourceClaimStatus:18 *PodExtendedResourceClaimStatus; allocatedResources:19 {}quantity; resources:20 *ResourceRequirements; nodeAllocatableResourceClaimStatuses:21 []NodeAllocatableResourceClaimStatus atomic
PodCondition = type:1!+ string:v1.PodConditionType; observedGeneration:7 int64; status:2!+ string:v1.ConditionStatus; lastProbeTime:3! time; lastTransitionTime:4! time; reason:5 string; message:6 string
HostIP = ip:1!+ string
PodIP = ip:1!+ string
ContainerStatus = name:1!+ string; state:2! ContainerState; lastState:3! ContainerState; ready:4!+ bool; restartCount:5!+ int32; image:6!+ string; imageID:7!+ string; containerID:8 string; started:9 *bool; allocatedResources:10 {}quantity; resources:11 *ResourceRequirements; volumeMounts:12 []VolumeMountStatus map(mountPath) ~merge(mountPath); user:13 *ContainerUser; allocatedResourcesStatus:14 []ResourceStatus map(name) ~merge(name); stopSignal:15 *string:v1.Signal
ContainerState = waiting:1 *ContainerStateWaiting; running:2 *ContainerStateRunning; terminated:3 *ContainerStateTerminated
ContainerStateWaiting = reason:1 string; message:2 string
ContainerStateRunning = startedAt:1! time
ContainerStateTerminated = exitCode:1!+ int32; signal:2 int32; reason:3 string; message:4 string; startedAt:5! time; finishedAt:6! time; containerID:7 string
VolumeMountStatus = name:1!+ string; mountPath:2!+ string; readOnly:3 bool; recursiveReadOnly:4 *string:v1.RecursiveReadOnlyMode; volumeStatus:5 *VolumeStatus
VolumeStatus = image:1 *ImageVolumeStatus
ImageVolumeStatus = imageRef:1+ string
ContainerUser = linux:1 *LinuxContainerUser
LinuxContainerUser = uid:1!+ int64; gid:2!+ int64; supplementalGroups:3 []int64 atomic
ResourceStatus = name:1!+ string:v1.ResourceName; resources:2 []ResourceHealth map(resourceID)
ResourceHealth = resourceID:1!+ string:v1.ResourceID; health:2 string:v1.ResourceHealthStatus; message:6 *string
PodResourceClaimStatus = name:1!+ string; resourceClaimName:2 *string
PodExtendedResourceClaimStatus = requestMappings:1!+ []ContainerExtendedResourceRequest atomic; resourceClaimName:2!+ string
ContainerExtendedResourceRequest = containerName:1!+ string; resourceName:2!+ string; requestName:3!+ string
NodeAllocatableResourceClaimStatus = resourceClaimName:1!+ string; containers:2 []string set; resources:3!+ {}quantity
`;
