/** Users and other clients: they write what an operation says, straight into a server. What a server rejects has no effect. */

import { keyOf, type KubeObject, type NamespacedName } from '../../../src/kube/object.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import type { Settings } from '../daemon/sim-config.ts';
import {
  encodeLastSynced,
  shortHash,
  type SyncedSection,
} from '../../../src/syncer/translate/last-synced.ts';
import type {
  ReferencedPlural,
  Side,
  StringMap,
  SyncedPlural,
  UserOperation,
} from '../history/operations.ts';
import { contentOf, metadataOf, referencedContent, specOf, typeOf } from './contents.ts';
import { SERVICE_NAME } from './host-controllers.ts';
import {
  HOST_NAMESPACE,
  hostPlaceOf,
  LEASE_NAME,
  OWNER_NAME,
  referencePlaceOf,
  VCLUSTER,
  VIRTUAL_NAMES,
} from './names.ts';
import { isHeadless, serviceSpec } from './service-storage.ts';
import type { SimCluster } from './sim-cluster.ts';

export const USER_MANAGER = 'user';
/** The end of a value that is given to a host object that is being deleted. */
export const TERMINATING = '-terminating';

const HOST_NAME = 'vcluster.loft.sh/object-host-name';
const OBJECT_NAME = 'vcluster.loft.sh/object-name';
const OPT_OUT = 'vcluster.loft.sh/controlled-by';
const RECORD = 'endpoint-syncer/last-synced';
type On<K extends UserOperation['kind']> = Extract<UserOperation, { kind: K }>;

export class User {
  readonly #clusters: Readonly<Record<Side, SimCluster>>;
  readonly #settings: () => Settings;
  readonly #isReloading: () => boolean;

  /** `isReloading`: a daemon may still run the settings before. */
  constructor(
    clusters: Readonly<Record<Side, SimCluster>>,
    settings: () => Settings,
    isReloading = (): boolean => false,
  ) {
    this.#clusters = clusters;
    this.#settings = settings;
    this.#isReloading = isReloading;
  }

  /** Does what the operation says where it makes sense at the moment. */
  perform(operation: UserOperation): void {
    try {
      this.#perform(operation);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
    }
  }

  createOwner(): void {
    const metadata = { namespace: HOST_NAMESPACE, name: OWNER_NAME };
    this.#clusters.host.create(
      'configmaps',
      { apiVersion: 'v1', kind: 'ConfigMap', metadata },
      { manager: USER_MANAGER },
    );
  }

  /** Of every object, wherever an earlier configuration put it. */
  removeFinalizers(side: Side, plural: SyncedPlural | ReferencedPlural): void {
    for (const object of this.#clusters[side].list(plural)) {
      const metadata = { ...object.metadata };
      if (metadata['finalizers'] === undefined) continue;
      delete metadata['finalizers'];
      this.#clusters[side].update(plural, { ...object, metadata }, { manager: USER_MANAGER });
    }
  }

  #perform(operation: UserOperation): void {
    switch (operation.kind) {
      case 'put':
        return this.#put(operation);
      case 'putService':
        return this.#putService(operation);
      case 'annotate':
        return this.#editMap(operation, 'annotations');
      case 'label':
        return this.#editMap(operation, 'labels');
      case 'damage':
        return this.#isClone(operation)
          ? undefined
          : this.#editMap({ ...operation, side: 'host' }, 'annotations');
      case 'forge':
        return this.#forge(operation);
      case 'optOut': {
        const value = operation.isOut ? 'another' : null;
        return this.#editMap({ ...operation, key: OPT_OUT, value }, 'annotations');
      }
      case 'finalizer':
        return this.#edit(operation, (current) => {
          const metadata = { ...current.metadata };
          if (operation.isSet) metadata['finalizers'] = ['example.com/hold'];
          else delete metadata['finalizers'];
          return { ...current, metadata };
        });
      case 'addresses':
        return this.#edit(operation, (current) => ({
          ...current,
          ...contentOf(operation.plural, operation.ips, { isDrift: operation.side === 'host', current }),
        }));
      case 'delete':
        return this.#delete(
          operation.side,
          operation.plural,
          this.#placeOf(operation.side, operation.object),
        );
      case 'service':
        return this.#service(operation);
      case 'foreign': {
        const { plural, object } = operation;
        const place = this.#placeOf('host', object);
        if (operation.isReplacing) this.#delete('host', plural, place);
        const content = contentOf(plural, 1, { isDrift: true });
        return this.#create('host', plural, { metadata: { ...place }, ...content });
      }
      case 'clone':
        return this.#clone(operation);
      case 'object':
        return this.#object(operation);
      case 'holdObject': {
        const { side, plural, isSet } = operation;
        const current = this.#clusters[side].get(plural, keyOf(this.#objectPlaceOf(operation)));
        if (current === undefined) return;
        const { finalizers: _, ...metadata } = current.metadata;
        const held = isSet ? { ...metadata, finalizers: ['example.com/hold'] } : metadata;
        this.#clusters[side].update(plural, { ...current, metadata: held }, { manager: USER_MANAGER });
        return;
      }
      case 'recreateOwner':
        this.#delete('host', 'configmaps', { namespace: HOST_NAMESPACE, name: OWNER_NAME });
        return this.createOwner();
      case 'deleteLease':
        return this.#delete('host', 'leases', { namespace: HOST_NAMESPACE, name: LEASE_NAME });
    }
  }

  #put({ plural, object, ips, annotations, labels }: On<'put'>): void {
    const name = this.#placeOf('virtual', object);
    const service = plural === 'endpointslices' ? { [SERVICE_NAME]: name.name } : {};
    const metadata = { ...name, annotations: { ...annotations }, labels: { ...labels, ...service } };
    this.#write('virtual', plural, { metadata, ...contentOf(plural, ips, { isDrift: false }) });
  }

  #forge({ plural, object, annotations, isCreated }: On<'forge'>): void {
    const name = this.#placeOf('virtual', object);
    const host = this.#placeOf('host', object);
    if (isCreated) this.#delete('virtual', plural, name);
    const labels = plural === 'endpointslices' ? { [SERVICE_NAME]: name.name } : {};
    const bookkeeping = {
      [OBJECT_NAME]: name.name,
      'vcluster.loft.sh/object-namespace': name.namespace,
      [HOST_NAME]: host.name,
      'vcluster.loft.sh/object-host-namespace': host.namespace,
      'vcluster.loft.sh/managed-annotations': Object.keys(annotations).toSorted().join('\n'),
      [RECORD]: encodeLastSynced({
        annotations: forgedSection(annotations),
        labels: forgedSection(labels),
        paths: new Map(),
      }),
    };
    const metadata = { ...name, annotations: { ...annotations, ...bookkeeping }, labels };
    this.#write('virtual', plural, { metadata, ...contentOf(plural, 1, { isDrift: false }) });
  }

  #putService({ object, form, ports, annotations, labels }: On<'putService'>): void {
    const name = this.#placeOf('virtual', object);
    const { virtual } = this.#clusters;
    const metadata = { ...name, annotations: { ...annotations }, labels: { ...labels } };
    const service = { metadata, spec: specOf(form, ports) };
    const current = virtual.get('services', keyOf(name));
    if (current === undefined || !isReplaced(current, service))
      return this.#write('virtual', 'services', service);
    const endpoints = virtual.get('endpoints', keyOf(name));
    this.#delete('virtual', 'services', name);
    this.#write('virtual', 'services', service);
    if (endpoints === undefined) return;
    const { annotations: kept, labels: keptLabels } = endpoints.metadata;
    const again = { ...name, ...(kept && { annotations: kept }), ...(keptLabels && { labels: keptLabels }) };
    this.#create('virtual', 'endpoints', { ...endpoints, metadata: again });
  }

  #service({ side, object, form }: On<'service'>): void {
    const name = this.#placeOf(side, object);
    if (form === 'absent') return this.#delete(side, 'services', name);
    const spec = form === 'selector' ? { selector: { app: name.name } } : {};
    // The host's Services are vCluster's copies, unless another client has created them, or no vCluster is there. A vCluster comes only after the
    // daemon has ceased to sync Services: until then, it deletes copies without an object.
    const isVclusters = !this.#settings().areServicesSynced && !this.#isReloading();
    const isCopy = side === 'host' && form !== 'unmarked' && isVclusters;
    const bookkeeping = isCopy ? serviceBookkeeping(object, name) : {};
    this.#write(side, 'services', {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...name, ...bookkeeping },
      spec,
    });
  }

  #clone({ plural, object, at }: On<'clone'>): void {
    const copy = this.#clusters.host.get(plural, keyOf(this.#placeOf('host', object)));
    if (copy === undefined || !isWhole(copy)) return;
    const { annotations, labels } = copy.metadata;
    const place = at === null ? { namespace: HOST_NAMESPACE, name: 'restored' } : this.#placeOf('host', at);
    const metadata = { ...place, annotations: { ...annotations }, labels: { ...labels } };
    this.#create('host', plural, { ...copy, metadata });
  }

  /** What is left of a damaged clone cannot be distinguished from a damaged copy. */
  #isClone({ plural, object }: On<'damage'>): boolean {
    const place = this.#placeOf('host', object);
    const stated = this.#clusters.host.get(plural, keyOf(place))?.metadata.annotations?.[HOST_NAME];
    return stated !== undefined && stated !== place.name;
  }

  #object({ side, plural, form, value, ...place }: On<'object'>): void {
    const where = this.#objectPlaceOf({ side, ...place });
    if (form === 'absent') return this.#delete(side, plural, where);
    const current = this.#clusters[side].get(plural, keyOf(where));
    const wanted = { metadata: { ...where }, ...referencedContent(plural, form, { value, side }) };
    const isFixed = current?.['immutable'] === true || (current?.['type'] ?? wanted.type) !== wanted.type;
    if (current === undefined || isFixed) {
      this.#delete(side, plural, where);
      this.#write(side, plural, { ...wanted, metadata: metadataOf(where, wanted.type) });
    } else this.#write(side, plural, { ...wanted, metadata: current.metadata });
  }

  #objectPlaceOf({
    side,
    namespace,
    name,
    place,
  }: Pick<On<'object'>, 'side' | 'namespace' | 'name' | 'place'>): NamespacedName {
    const virtual = { namespace, name };
    if (side === 'virtual') return virtual;
    return place === 'target'
      ? referencePlaceOf(virtual, this.#settings())
      : { namespace: HOST_NAMESPACE, name };
  }

  #editMap(
    operation: { side: Side; plural: SyncedPlural; object: number; key: string; value: string | null },
    member: 'annotations' | 'labels',
  ): void {
    const { key, value } = operation;
    this.#edit(operation, (current) => {
      const map = { ...current.metadata[member] };
      const isEnding = operation.side === 'host' && current.metadata.deletionTimestamp !== undefined;
      if (value === null) delete map[key];
      else map[key] = isEnding && member === 'annotations' && key !== OPT_OUT ? value + TERMINATING : value;
      return { ...current, metadata: { ...current.metadata, [member]: map } };
    });
  }

  #edit(
    { side, plural, object }: { side: Side; plural: SyncedPlural; object: number },
    change: (current: KubeObject) => KubeObject,
  ): void {
    const current = this.#clusters[side].get(plural, keyOf(this.#placeOf(side, object)));
    if (current !== undefined)
      this.#clusters[side].update(plural, change(current), { manager: USER_MANAGER });
  }

  #create(side: Side, plural: SyncedPlural, object: KubeObject): void {
    this.#clusters[side].create(plural, { ...typeOf(plural), ...object }, { manager: USER_MANAGER });
  }

  #write(side: Side, plural: string, object: KubeObject): void {
    const isThere =
      this.#clusters[side].get(plural, keyOf({ namespace: '', ...object.metadata })) !== undefined;
    const typed = { ...typeOf(plural), ...object };
    if (isThere) this.#clusters[side].update(plural, typed, { manager: USER_MANAGER });
    else this.#clusters[side].create(plural, typed, { manager: USER_MANAGER });
  }

  #delete(side: Side, plural: string, name: NamespacedName): void {
    if (this.#clusters[side].get(plural, keyOf(name)) !== undefined)
      this.#clusters[side].delete(plural, name, { manager: USER_MANAGER });
  }

  #placeOf(side: Side, object: number): NamespacedName {
    const name = VIRTUAL_NAMES[object];
    if (name === undefined) throw new Error(`there is no object ${object}`);
    return side === 'virtual' ? name : hostPlaceOf(name, this.#settings());
  }
}

function serviceBookkeeping(
  object: number,
  host: NamespacedName,
): Pick<KubeObject['metadata'], 'annotations' | 'labels'> {
  const { name = '', namespace = '' } = VIRTUAL_NAMES[object] ?? {};
  return {
    annotations: {
      [OBJECT_NAME]: name,
      'vcluster.loft.sh/object-namespace': namespace,
      'vcluster.loft.sh/object-kind': '/v1, Kind=Service',
      [HOST_NAME]: host.name,
      'vcluster.loft.sh/object-host-namespace': host.namespace,
    },
    labels: { 'vcluster.loft.sh/managed-by': VCLUSTER },
  };
}

/** Each value is what the host holds, and something else is what the virtual object held. */
function forgedSection(values: StringMap): SyncedSection {
  return new Map(
    Object.entries(values).map(([key, value]) => [
      shortHash(key),
      { virtual: shortHash(`not ${value}`), host: shortHash(value), isFromHost: false },
    ]),
  );
}

/** What is left of the bookkeeping of a damaged copy may fit the place of its clone. */
function isWhole({ metadata: { name, annotations } }: KubeObject): boolean {
  const record = annotations?.[RECORD];
  return annotations?.[OBJECT_NAME] !== undefined && annotations[HOST_NAME] === name && record !== undefined;
}

/** The API server refuses the change, so the user deletes the Service and creates it again, with its Endpoints. */
function isReplaced(current: KubeObject, wanted: KubeObject): boolean {
  const [now, next] = [serviceSpec(current), serviceSpec(wanted)];
  const isExternal = [now, next].some(({ type }) => type === 'ExternalName');
  const isOtherClass = [now, next].every(({ type }) => type === 'LoadBalancer');
  return (
    (!isExternal && isHeadless(current) !== isHeadless(wanted)) ||
    (isOtherClass && now.loadBalancerClass !== next.loadBalancerClass)
  );
}
