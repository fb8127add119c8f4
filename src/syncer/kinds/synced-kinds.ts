/** The kinds that a configuration syncs, and which of their objects it selects. */

import { textPattern } from '../../base/text-pattern.ts';
import type { PatchConfig } from '../patch/patch-schema.ts';
import { parseLabelSelector, printSelector, type SelectorOperator } from '../../kube/label-selector.ts';
import type { Lister } from '../../kube/types.ts';
import {
  ENDPOINT_SLICES,
  ENDPOINTS,
  objectKey,
  SERVICES,
  type KubeObject,
  type ObjectKey,
  type Resource,
} from '../../kube/object.ts';
import type { KnownFields } from '../patch/check-patch.ts';
import { compilePatches, type CompiledPatches } from '../patch/compile.ts';
import {
  addressesOfSlice,
  BY_SERVICE,
  createEndpointSliceKind,
  endpointSliceFields,
  exclusion,
} from './endpoint-slices.ts';
import { addressesOfEndpoints, createEndpointsKind, endpointsFields, isMirrored } from './endpoints.ts';
import { KEEPING_REASONS, type GateReason, type SyncedKind } from './kind.ts';
import type { LocalServiceOf } from './local-traffic.ts';
import type { AddressField } from './load-balancers.ts';
import type { NeverCopied } from './service-names.ts';
import { createServiceKind, serviceFields, statusPatch } from './services.ts';

/** A key of `sync.toHost` with patches that this program applies. */
export type PatchedKey = 'endpoints' | 'endpointSlices' | 'services';

export interface PatchedKind {
  readonly configKey: PatchedKey;
  readonly resource: Resource;
  readonly fields: KnownFields;
}

export const PATCHED_KINDS: readonly PatchedKind[] = [
  { configKey: 'endpoints', resource: ENDPOINTS, fields: endpointsFields },
  { configKey: 'endpointSlices', resource: ENDPOINT_SLICES, fields: endpointSliceFields },
  { configKey: 'services', resource: SERVICES, fields: serviceFields },
];

/** The kinds whose patches this program applies: those of Services are vCluster's where it syncs them. */
export function patchedKinds({ services }: Pick<KindSettings, 'services'>): readonly PatchedKind[] {
  return PATCHED_KINDS.filter(({ resource }) => resource !== SERVICES || services.mode === 'sync');
}

/** Every kind that a current or an earlier configuration can sync. */
export const SYNCABLE_RESOURCES: readonly Resource[] = PATCHED_KINDS.map(({ resource }) => resource);

/** By plural, for the kinds whose status is synced: see `SyncedKind.statusPatch`. */
export const STATUS_PATCHES: ReadonlyMap<string, SyncedKind['statusPatch']> = new Map([
  [SERVICES.plural, statusPatch],
]);

/** What of a configuration decides which kinds are synced. */
interface KindSettings {
  readonly sync: Readonly<
    Record<PatchedKey, { readonly enabled: boolean; readonly patches: readonly PatchConfig[] }>
  >;
  readonly services: { readonly mode: 'vcluster' | 'sync'; readonly allow: readonly AddressField[] };
}

/** What of a configuration decides which of their objects are. */
interface SelectionSettings {
  readonly selector: LabelSelectorSettings;
  readonly namespaces: { readonly include: readonly string[]; readonly exclude: readonly string[] };
}

interface LabelSelectorSettings {
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly matchExpressions: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values: readonly string[];
  }[];
}

export interface ConfiguredKind {
  readonly kind: SyncedKind;
  readonly patches: readonly PatchConfig[];
}

export type VirtualCache = Pick<Lister, 'get' | 'byIndex'>;

/** `virtualCaches`: by plural; may be filled later. */
export function syncedKinds(
  config: KindSettings & SelectionSettings,
  virtualCaches: ReadonlyMap<string, VirtualCache> = new Map(),
): readonly ConfiguredKind[] {
  const {
    sync,
    services: { mode, allow },
  } = config;
  const selection = selectionOf(config);
  const { endpoints, endpointSlices, services } = sync;
  const isEndpointsSynced = endpoints.enabled;
  const endpointsOf = (service: ObjectKey): KubeObject | undefined => {
    const object = virtualCaches.get(ENDPOINTS.plural)?.get(service);
    return object !== undefined && selection(object) === undefined ? object : undefined;
  };
  function* slicesOf(service: ObjectKey): Generator<KubeObject> {
    const cache = virtualCaches.get(ENDPOINT_SLICES.plural);
    for (const key of cache?.byIndex(BY_SERVICE, service) ?? []) {
      const slice = cache?.get(key);
      const reason = slice && (selection(slice) ?? exclusion(slice, { isEndpointsSynced }));
      if (slice !== undefined && reason === undefined) yield slice;
    }
  }
  const neverCopied: NeverCopied = (key) => {
    const service = mode === 'sync' ? virtualCaches.get(SERVICES.plural)?.get(key) : undefined;
    const reason =
      service && (selection(service) ?? serviceKind.gate(service, undefined, { requireService: false }));
    return reason === undefined || KEEPING_REASONS.has(reason) ? undefined : reason;
  };
  const localServiceOf =
    (patches: readonly PatchConfig[]): LocalServiceOf =>
    (key) => {
      const isHandled = mentions(patches, 'nodeName') || mentions(services.patches, 'TrafficPolicy');
      return mode === 'sync' && !isHandled ? virtualCaches.get(SERVICES.plural)?.get(key) : undefined;
    };
  const slices = createEndpointSliceKind({
    isEndpointsSynced,
    neverCopied,
    localServiceOf: localServiceOf(endpointSlices.patches),
    *addressesOf(service) {
      const own = endpointsOf(service);
      if (own !== undefined && isMirrored(own)) yield addressesOfEndpoints(own);
      yield* slicesOf(service).map(addressesOfSlice);
    },
  });
  const endpointsKind = createEndpointsKind({
    slicesOf: (service) => slicesOf(service).map(addressesOfSlice),
    localServiceOf: localServiceOf(endpoints.patches),
  });
  const serviceKind = createServiceKind({
    hasSyncedEndpoints: (service) => {
      const key = objectKey(service);
      return endpointsOf(key) !== undefined || slicesOf(key).next().done === false;
    },
    allow,
    neverCopied,
  });
  const kinds = [
    ...(endpoints.enabled ? [{ kind: endpointsKind, patches: endpoints.patches }] : []),
    ...(endpointSlices.enabled ? [{ kind: slices, patches: endpointSlices.patches }] : []),
    ...(services.enabled && mode === 'sync' ? [{ kind: serviceKind, patches: services.patches }] : []),
  ];
  return kinds.map(({ kind, patches }) => ({ kind: selecting(kind, selection), patches }));
}

/** Its path or an expression names the field, so the operator knows of it. */
function mentions(patches: readonly PatchConfig[], field: string): boolean {
  return patches.some((patch) => JSON.stringify(patch).includes(field));
}

type Selection = (virtual: KubeObject) => GateReason | undefined;

export function selectionOf({ selector, namespaces }: SelectionSettings): Selection {
  const hasLabels = parseLabelSelector(selectorText(selector));
  const [included, excluded] = [namespaces.include, namespaces.exclude].map((patterns) => {
    const tests = patterns.map((pattern) => textPattern(pattern));
    return (name: string): boolean => tests.some((test) => test(name));
  });
  return ({ metadata: { namespace = '', labels = {} } }) => {
    const isOutside = namespaces.include.length > 0 && included?.(namespace) === false;
    if (isOutside || excluded?.(namespace) === true) return 'namespace is excluded';
    return hasLabels(labels) ? undefined : 'not selected';
  };
}

function selecting(kind: SyncedKind, selection: Selection): SyncedKind {
  return {
    ...kind,
    gate: (virtual, service, options) => selection(virtual) ?? kind.gate(virtual, service, options),
  };
}

const OPERATORS: Readonly<
  Record<LabelSelectorSettings['matchExpressions'][number]['operator'], SelectorOperator>
> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
};

/** In the grammar of label selectors; '' selects everything. */
export function selectorText({ matchLabels, matchExpressions }: LabelSelectorSettings): string {
  return printSelector([
    ...Object.entries(matchLabels).map(([key, value]) => ({ key, operator: '=', values: [value] }) as const),
    ...matchExpressions.map(({ key, operator, values }) => ({ key, operator: OPERATORS[operator], values })),
  ]);
}

export function enablingSettings(
  { sync }: Pick<KindSettings, 'sync'>,
  rights: readonly { readonly resource: string }[],
): readonly string[] {
  return PATCHED_KINDS.flatMap(({ configKey, resource: { plural } }) => {
    const isNeeded = sync[configKey].enabled && rights.some(({ resource }) => resource === plural);
    return isNeeded && plural !== SERVICES.plural ? [`sync.toHost.${configKey}.enabled`] : [];
  });
}

/** Undefined if the resource is synced, or never can be. */
export function disablingSetting({ sync, services }: KindSettings, { plural }: Resource): string | undefined {
  const serviceSetting = sync.services.enabled
    ? 'endpointSyncer.services is vcluster'
    : 'sync.toHost.services.enabled is false';
  const settings: Readonly<Record<string, string | false>> = {
    [ENDPOINTS.plural]: !sync.endpoints.enabled && 'sync.toHost.endpoints.enabled is false',
    [ENDPOINT_SLICES.plural]: !sync.endpointSlices.enabled && 'sync.toHost.endpointSlices.enabled is false',
    [SERVICES.plural]: !(sync.services.enabled && services.mode === 'sync') && serviceSetting,
  };
  return settings[plural] || undefined;
}

export interface CompiledKind {
  readonly kind: SyncedKind;
  readonly patches: CompiledPatches;
}

/** All kinds share one sandbox, so program numbers are unique across kinds. */
export function compileKinds(
  kinds: readonly ConfiguredKind[],
  { missingPaths }: { readonly missingPaths: 'skip' | 'create' },
): readonly CompiledKind[] {
  let programs = 0;
  return kinds.map(({ kind, patches }) => {
    const compiled = compilePatches(patches, programs, missingPaths);
    programs += compiled.programs.length;
    return { kind, patches: compiled };
  });
}
