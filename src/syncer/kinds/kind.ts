/** The interfaces of a kind: what is known of it without a sync, and what the engine asks. Each kind is one file of this folder, and one line of
 * `synced-kinds.ts`; no other code branches on the kind. */

import type { RecordedEvent, IndexFunctions, Lister } from '../../kube/types.ts';
import { asJson, type KubeObject, type ObjectKey, type Resource } from '../../kube/object.ts';
import { objectField, type JsonObject } from '../../base/json.ts';
import type { Fields, KnownFields, PatchLimits } from '../patch/check-patch.ts';
import type { PatchConfig } from '../patch/patch-schema.ts';
import type { ValidateResult } from '../patch/types.ts';
import type { ContentRules, NameTranslator } from '../translate/types.ts';
import type { AddressField } from './load-balancers.ts';
import type { AddressHolder, LocalServiceOf } from './service-notices.ts';

export type GateReason =
  | 'service has a selector'
  | 'no service'
  | 'no service name'
  | 'selects Pods'
  | 'no synced endpoints'
  | 'made by the EndpointSlice controller'
  | 'mirrored from Endpoints'
  | 'namespace is excluded'
  | 'not selected';

/** Reasons for which no copy is created, while one that exists is kept in sync: its addresses and node ports would be lost. */
export const KEEPING_REASONS: ReadonlySet<GateReason> = new Set(['no synced endpoints']);

/** The Event about a copy that is there as it should be, while nothing on the host can use it. */
export const NO_EFFECT = { type: 'Warning', reason: 'NoEffect' } as const;

/** Hides a slice from kube-proxy, whatever its Service is, and the mirroring controller copies it from Endpoints, where the endpoints controller leaves it
 * when a selector goes. No copy needs it: kube-proxy knows headless Services by their address. */
export const HEADLESS_LABEL = 'service.kubernetes.io/headless';

/** Index on virtual slices: the keys of the Services that they give addresses. */
export const BY_SERVICE = 'service';

export interface GateOptions {
  readonly requireService: boolean;
}

export interface CopyAddress {
  /** IP addresses and DNS names: cluster IPs first, then those from outside the cluster. */
  readonly addresses: string[];
  /** As in kubectl: `80/TCP`, with a node port `80:30080/TCP`. */
  readonly ports: string[];
}

/** A virtual namespace that has no namespace on the host, and the path in the object whose value is in it. */
export interface UnmappedNamespace {
  readonly namespace: string;
  readonly path: string;
}

/** Why a virtual Service has no copy and gets none; undefined: it has one, may get one, or does not exist. */
export type NeverCopied = (service: ObjectKey) => GateReason | undefined;

/** What the objects of one kind must know of those of others. Services are the virtual ones. */
export interface Relations {
  /** Endpoints are synced, too: the host mirrors their copies into slices itself. */
  readonly isEndpointsSynced: boolean;
  /** The synced slices of a Service. */
  readonly slicesOf: (service: ObjectKey) => Iterable<AddressHolder>;
  /** The synced Endpoints and slices that give a Service addresses. */
  readonly addressesOf: (service: ObjectKey) => Iterable<AddressHolder>;
  /** Endpoints of this key, or a slice of this Service, are synced. */
  readonly hasSyncedEndpoints: (service: KubeObject) => boolean;
  readonly neverCopied: NeverCopied;
  /** `patches`: those of the objects behind the Service. */
  readonly localServiceOf: (patches: readonly PatchConfig[]) => LocalServiceOf;
}

/** What a configuration says of one kind. */
export interface KindSettings {
  readonly enabled: boolean;
  /** None of Services where vCluster syncs them: they are vCluster's. */
  readonly patches: readonly PatchConfig[];
}

/** What it says of Services beside that. */
export interface ServiceSettings {
  readonly services: { readonly mode: 'vcluster' | 'sync'; readonly allow: readonly AddressField[] };
}

/** What is true of a kind without a sync. */
export interface SyncableKind<K extends string = string> extends PatchLimits {
  /** Of `sync.toHost`. */
  readonly key: K;
  /** Of `enabled`. */
  readonly description: string;
  readonly isEnabledByDefault: boolean;
  readonly resource: Resource;
  readonly fields: KnownFields;
  create(settings: KindSettings, relations: Relations, config: ServiceSettings): SyncedKind;
  validation(config: ServiceSettings): ValidateResult;
  /** The setting by which the kind is left to others although it is enabled; undefined: this program syncs it. */
  readonly leftBy?: (config: ServiceSettings) => string | undefined;
  /** See `SyncedKind.statusPatch`. */
  readonly statusPatch?: SyncedKind['statusPatch'];
  /** A controller of the host has adopted the copy, and updates it. */
  readonly isAdopted?: (host: KubeObject) => boolean;
  /** Content of an object, on which expressions are tried. */
  readonly sample: JsonObject;
  /** Names of what the playground shows of the kind, in `examples.yaml`. Absent: the `sample`. */
  readonly examples?: readonly string[];
  /** What changes when this program syncs the kind in the place of vCluster; none for a kind that vCluster does not sync. */
  readonly migration?: {
    /** What differs, and the setting by which it does not. */
    readonly differences: readonly { readonly differs: string; readonly setting: string }[];
    readonly gains?: readonly string[];
    /** Rights that vCluster's chart grants with its sync only, and that vCluster needs without it, too. */
    readonly keptRules?: readonly JsonObject[];
  };
}

/** Whether a change of a host copy needs another copy in its place: `never`; `forReaders`, who would keep what they have of it, although the API server
 * accepts the change; `always`, because the API server rejects the change, or a controller would keep the copy from being used. */
export type Recreation = 'never' | 'forReaders' | 'always';

export interface SyncedKind {
  readonly resource: Resource;
  readonly content: ContentRules;
  /** Leaves objects out of the caches of both sides that are not synced anyway, whatever else they contain. Absent: all are cached. */
  readonly labelSelector?: string;
  /** Appended to the Event about a copy that is deleted repeatedly: a likely cause. A sentence with a leading space, or ''. */
  readonly deletionHint: string;
  readonly translationNote: string;
  readonly validate: ValidateResult;
  /** The virtual Service that decides about an object; `virtual` is undefined where the object is gone. */
  serviceKey(key: ObjectKey, virtual: KubeObject | undefined): ObjectKey | undefined;
  readonly indexes: IndexFunctions;
  /** The host Service that this host object gets traffic from; undefined: none. */
  hostService(host: KubeObject): ObjectKey | undefined;
  keysOfService(service: ObjectKey, virtual: Lister): Iterable<ObjectKey>;
  /** Virtual objects of other synced kinds that decide about objects of this kind: by plural, the keys that such an object concerns. */
  readonly relatedKinds: Readonly<Record<string, (object: KubeObject) => readonly ObjectKey[]>>;
  /** Controllers of the host delete objects of this kind that have no Service. */
  readonly isDeletedByControllers: boolean;
  /** The host's endpoints controller deletes objects of this kind that have no Service, but for those with an annotation (`UNSERVED`). */
  readonly isSparedWithMark: boolean;
  /** Kinds of which API servers before 1.37, or controllers after some time, delete the object of the same name along with one of this kind. */
  readonly deletesAlong: readonly Resource[];
  /** Why the object is not synced, or has no copy yet ({@link KEEPING_REASONS}); undefined: it is. */
  gate(virtual: KubeObject, service: KubeObject | undefined, options: GateOptions): GateReason | undefined;
  /** The object names another one that has no name on the host. Absent: never. */
  readonly unmappedNamespace?: (virtual: KubeObject, names: NameTranslator) => UnmappedNamespace | undefined;
  /** A copy without a record of this program is another syncer's to delete, as long as the virtual object exists. */
  readonly leavesUnrecorded: boolean;
  /** Proof that a controller of the host created an object without bookkeeping, so that it may be taken over. */
  isMadeByController(host: KubeObject): boolean;
  recreationOf(wanted: KubeObject, actual: KubeObject, virtual: KubeObject): Recreation;
  /** Of what is created again: its readers would miss it until then, and take another object with the same content for it. */
  hasStandIn(wanted: KubeObject, actual: KubeObject): boolean;
  noticeOfGate(reason: string): RecordedEvent | undefined;
  /** Merge patch for the status of the virtual object; undefined if it equals the host's. `host` undefined: the copy is gone. */
  readonly statusPatch: (virtual: KubeObject, host: KubeObject | undefined) => JsonObject | undefined;
  /** {@link statusPatch} can return a patch, so the right to write the status is needed. */
  readonly hasStatus: boolean;
  /** Allocated by the host, so the virtual object does not have it. Absent: copies of this kind have no address. */
  readonly addressOf?: (host: KubeObject) => CopyAddress;
  /** What the tenant should know of an object that is in sync. */
  noticesOf(virtual: KubeObject): readonly RecordedEvent[];
  /** Objects that name this virtual Service, which {@link noticesOf} depends on. */
  keysNaming(service: ObjectKey, virtual: Lister): Iterable<ObjectKey>;
}

/** Of kinds whose objects no other kind decides about, and whose status is not synced. */
export const PLAIN_KIND = {
  indexes: {},
  relatedKinds: {},
  isDeletedByControllers: true,
  isSparedWithMark: false,
  leavesUnrecorded: false,
  deletesAlong: [],
  isMadeByController: () => false,
  recreationOf: () => 'never',
  hasStandIn: () => false,
  noticeOfGate: () => undefined,
  statusPatch: () => undefined,
  hasStatus: false,
  noticesOf: () => [],
  keysNaming: () => [],
} satisfies Partial<SyncedKind>;

/** True when the Service selects Pods, so that a controller of its cluster writes its Endpoints and slices. */
export function hasSelector(service: KubeObject): boolean {
  return Object.keys(objectField(objectField(asJson(service), 'spec'), 'selector')).length > 0;
}

export function serviceGate(service: KubeObject | undefined, options: GateOptions): GateReason | undefined {
  if (service === undefined) return options.requireService ? 'no service' : undefined;
  return hasSelector(service) ? 'service has a selector' : undefined;
}

// Known fields, for warnings about patch paths that can never match.

/** Fields with a scalar value: their names, separated by blanks. */
export function scalars(names: string): { readonly [field: string]: Fields } {
  return Object.fromEntries(names.split(' ').map((name) => [name, 'value']));
}

export const REFERENCE_FIELDS = scalars('apiVersion fieldPath kind name namespace resourceVersion uid');
export const PORT_FIELDS = scalars('appProtocol name port protocol');
export const OBJECT_FIELDS = {
  ...scalars('apiVersion kind'),
  metadata: {
    ...scalars('creationTimestamp deletionGracePeriodSeconds deletionTimestamp generateName generation'),
    ...scalars('name namespace resourceVersion selfLink uid'),
    annotations: { '*': 'value' },
    finalizers: { '*': 'value' },
    labels: { '*': 'value' },
    managedFields: 'any',
    ownerReferences: 'any',
  },
} as const satisfies Fields;

/** Of samples. */
export const SAMPLE_PORT = { name: 'http', port: 80, protocol: 'TCP' };
export const SAMPLE_TARGET = {
  targetRef: { kind: 'Pod', name: 'web-0', namespace: 'default' },
  nodeName: 'node',
  hostname: 'web-0',
};
