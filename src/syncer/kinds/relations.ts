/** What the synced objects of one kind must know of those of others: the Endpoints and slices of a Service, and the Service of both. */

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
import { addressesOfSlice, BY_SERVICE, exclusion } from './endpoint-slices.ts';
import { addressesOfEndpoints, isMirrored } from './endpoints.ts';
import {
  KEEPING_REASONS,
  type GateReason,
  type KindSettings,
  type Relations,
  type ServiceSettings,
} from './kind.ts';
import { serviceExclusion } from './services.ts';

export type VirtualCache = Pick<Lister, 'get' | 'byIndex'>;

/** Why the configuration leaves a virtual object out, whatever its kind. */
export type Selection = (virtual: KubeObject) => GateReason | undefined;

/** What of a configuration decides about them. */
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
  const serviceOf = (key: ObjectKey): KubeObject | undefined =>
    mode === 'sync' ? virtualCaches.get(SERVICES.plural)?.get(key) : undefined;
  const hasSyncedEndpoints = (service: KubeObject): boolean => {
    const key = objectKey(service);
    return endpointsOf(key) !== undefined || slicesOf(key).next().done === false;
  };
  return {
    isEndpointsSynced,
    slicesOf: (service) => slicesOf(service).map(addressesOfSlice),
    *addressesOf(service) {
      const own = endpointsOf(service);
      if (own !== undefined && isMirrored(own)) yield addressesOfEndpoints(own);
      yield* slicesOf(service).map(addressesOfSlice);
    },
    hasSyncedEndpoints,
    neverCopied(key) {
      const service = serviceOf(key);
      const reason = service && (selection(service) ?? serviceExclusion(service, hasSyncedEndpoints));
      return reason === undefined || KEEPING_REASONS.has(reason) ? undefined : reason;
    },
    localServiceOf: (patches) => (key) => {
      const isHandled = mentions(patches, 'nodeName') || mentions(sync.services.patches, 'TrafficPolicy');
      return isHandled ? undefined : serviceOf(key);
    },
  };
}

/** Its path or an expression names the field, so the operator knows of it. */
function mentions(patches: readonly PatchConfig[], field: string): boolean {
  return patches.some((patch) => JSON.stringify(patch).includes(field));
}
