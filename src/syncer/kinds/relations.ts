/** Which objects a configuration selects, and what those of one kind must know of those of others: the Endpoints and slices of a Service, and the
 * Service of both. */

import { textPattern } from '../../base/text-pattern.ts';
import { parseLabelSelector, printLabelSelector, type LabelSelector } from '../../kube/label-selector.ts';
import {
  ENDPOINT_SLICES,
  ENDPOINTS,
  objectKey,
  SERVICES,
  type KubeObject,
  type ObjectKey,
} from '../../kube/object.ts';
import type { Lister } from '../../kube/types.ts';
import type { PatchConfig } from '../patch/patch-schema.ts';
import { addressesOfSlice, exclusion } from './endpoint-slices.ts';
import { addressesOfEndpoints, isMirrored } from './endpoints.ts';
import {
  BY_SERVICE,
  KEEPING_REASONS,
  type GateReason,
  type KindSettings,
  type Relations,
  type ServiceSettings,
  type SyncedKind,
} from './kind.ts';
import type { AddressHolder } from './service-notices.ts';
import { serviceExclusion } from './services.ts';

export type VirtualCache = Pick<Lister, 'get' | 'byIndex'>;

/** Why the configuration leaves a virtual object out, whatever its kind. */
export type Selection = (virtual: KubeObject) => GateReason | undefined;

/** What of a configuration decides about that. */
export interface SelectionSettings {
  readonly selector: LabelSelector;
  readonly namespaces: { readonly include: readonly string[]; readonly exclude: readonly string[] };
}

export function selectionOf({ selector, namespaces }: SelectionSettings): Selection {
  const hasLabels = parseLabelSelector(printLabelSelector(selector));
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

export function selecting(kind: SyncedKind, selection: Selection): SyncedKind {
  return {
    ...kind,
    gate: (virtual, service, options) => selection(virtual) ?? kind.gate(virtual, service, options),
  };
}

/** What of a configuration decides about the relations of objects. */
interface RelationSettings extends ServiceSettings {
  readonly sync: Readonly<Record<'endpoints' | 'services', KindSettings>>;
}

/** `virtualCaches`: by plural; may be filled later. */
export function relationsOf(
  { sync, services: { mode } }: RelationSettings,
  selection: Selection,
  virtualCaches: ReadonlyMap<string, VirtualCache>,
): Relations {
  const isEndpointsSynced = sync.endpoints.enabled;
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
  function* addressesOfSlices(service: ObjectKey): Generator<AddressHolder> {
    for (const slice of slicesOf(service)) yield addressesOfSlice(slice);
  }
  const serviceOf = (key: ObjectKey): KubeObject | undefined =>
    mode === 'sync' ? virtualCaches.get(SERVICES.plural)?.get(key) : undefined;
  const hasSyncedEndpoints = (service: KubeObject): boolean => {
    const key = objectKey(service);
    return endpointsOf(key) !== undefined || slicesOf(key).next().done === false;
  };
  return {
    isEndpointsSynced,
    slicesOf: addressesOfSlices,
    *addressesOf(service) {
      const own = endpointsOf(service);
      if (own !== undefined && isMirrored(own)) yield addressesOfEndpoints(own);
      yield* addressesOfSlices(service);
    },
    hasSyncedEndpoints,
    neverCopied(key) {
      const service = serviceOf(key);
      const reason = service && (selection(service) ?? serviceExclusion(service, hasSyncedEndpoints));
      return reason === undefined || KEEPING_REASONS.has(reason) ? undefined : reason;
    },
    localServiceOf(patches) {
      const isHandled = mentions(patches, 'nodeName') || mentions(sync.services.patches, 'TrafficPolicy');
      return isHandled ? () => undefined : serviceOf;
    },
  };
}

/** Its path or an expression names the field, so the operator knows of it. */
function mentions(patches: readonly PatchConfig[], field: string): boolean {
  return patches.some((patch) => JSON.stringify(patch).includes(field));
}
