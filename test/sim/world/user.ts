/** Users and other clients: they write what an operation says, straight into a server. What a server rejects has no effect. */

import { keyOf, type KubeObject, type NamespacedName } from '../../../src/kube/object.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import type { Settings } from '../daemon/sim-config.ts';
import type { ObjectForm, Side, SyncedPlural, UserOperation } from '../history/operations.ts';
import { SERVICE_NAME } from './host-controllers.ts';
import {
  HOST_NAMESPACE,
  hostPlaceOf,
  LEASE_NAME,
  OWNER_NAME,
  referencePlaceOf,
  VIRTUAL_NAMES,
} from './names.ts';
import type { SimCluster } from './sim-cluster.ts';

export const USER_MANAGER = 'user';
/** In what a reference must never carry to the other side; no other object holds this text. */
export const FORBIDDEN = 'FORBIDDEN';

const HOST_NAME = 'vcluster.loft.sh/object-host-name';
const OPT_OUT = 'vcluster.loft.sh/controlled-by';
const KINDS = {
  endpoints: 'Endpoints',
  endpointslices: 'EndpointSlice',
  secrets: 'Secret',
  configmaps: 'ConfigMap',
};
const FORBIDDEN_TYPES = [
  'kubernetes.io/service-account-token',
  'bootstrap.kubernetes.io/token',
  'helm.sh/release.v1',
];

type On<K extends UserOperation['kind']> = Extract<UserOperation, { kind: K }>;

export class User {
  readonly #clusters: Readonly<Record<Side, SimCluster>>;
  readonly #settings: () => Settings;

  constructor(clusters: Readonly<Record<Side, SimCluster>>, settings: () => Settings) {
    this.#clusters = clusters;
    this.#settings = settings;
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
    this.#clusters.host.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata }, USER_MANAGER);
  }

  /** Of every object, wherever an earlier configuration put it. */
  removeFinalizers(side: Side, plural: SyncedPlural): void {
    for (const object of this.#clusters[side].list(plural)) {
      const metadata = { ...object.metadata };
      if (metadata['finalizers'] === undefined) continue;
      delete metadata['finalizers'];
      this.#clusters[side].update(plural, { ...object, metadata }, USER_MANAGER);
    }
  }

  #perform(operation: UserOperation): void {
    switch (operation.kind) {
      case 'put':
        return this.#put(operation);
      case 'annotate':
        return this.#editMap(operation, 'annotations');
      case 'label':
        return this.#editMap(operation, 'labels');
      case 'damage':
        return this.#isClone(operation)
          ? undefined
          : this.#editMap({ ...operation, side: 'host' }, 'annotations');
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
          ...contentOf(operation.plural, operation.ips, operation.side === 'host'),
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
        const content = contentOf(plural, 1, true);
        return this.#create('host', plural, { metadata: { ...this.#placeOf('host', object) }, ...content });
      }
      case 'clone':
        return this.#clone(operation);
      case 'object':
        return this.#object(operation);
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
    this.#write('virtual', plural, { metadata, ...contentOf(plural, ips, false) });
  }

  #service({ side, object, form }: On<'service'>): void {
    const name = this.#placeOf(side, object);
    if (form === 'absent') {
      const isThere = this.#clusters[side].get('services', keyOf(name)) !== undefined;
      this.#delete(side, 'services', name);
      // An API server removes the Endpoints together with their Service.
      if (isThere) this.#delete(side, 'endpoints', name);
      return;
    }
    const spec = form === 'selector' ? { selector: { app: name.name } } : {};
    this.#write(side, 'services', { apiVersion: 'v1', kind: 'Service', metadata: { ...name }, spec });
  }

  #clone({ plural, object, at }: On<'clone'>): void {
    const copy = this.#clusters.host.get(plural, keyOf(this.#placeOf('host', object)));
    if (copy === undefined) return;
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

  #object({ side, plural, namespace, name, place, form, value }: On<'object'>): void {
    const virtual = { namespace, name };
    const target =
      place === 'target' ? referencePlaceOf(virtual, this.#settings()) : { namespace: HOST_NAMESPACE, name };
    const where = side === 'virtual' ? virtual : target;
    if (form === 'absent') return this.#delete(side, plural, where);
    const current = this.#clusters[side].get(plural, keyOf(where));
    const wanted = { metadata: { ...where }, ...referencedContent(plural, form, { value, side }) };
    const isFixed = current?.['immutable'] === true || (current?.['type'] ?? wanted.type) !== wanted.type;
    if (current === undefined || isFixed) {
      this.#delete(side, plural, where);
      this.#write(side, plural, { ...wanted, metadata: metadataOf(where, wanted.type) });
    } else this.#write(side, plural, { ...wanted, metadata: current.metadata });
  }

  #editMap(
    operation: { side: Side; plural: SyncedPlural; object: number; key: string; value: string | null },
    member: 'annotations' | 'labels',
  ): void {
    const { key, value } = operation;
    this.#edit(operation, (current) => {
      const map = { ...current.metadata[member] };
      if (value === null) delete map[key];
      else map[key] = value;
      return { ...current, metadata: { ...current.metadata, [member]: map } };
    });
  }

  #edit(
    { side, plural, object }: { side: Side; plural: SyncedPlural; object: number },
    change: (current: KubeObject) => KubeObject,
  ): void {
    const current = this.#clusters[side].get(plural, keyOf(this.#placeOf(side, object)));
    if (current !== undefined) this.#clusters[side].update(plural, change(current), USER_MANAGER);
  }

  #create(side: Side, plural: SyncedPlural, object: KubeObject): void {
    this.#clusters[side].create(plural, { ...typeOf(plural), ...object }, USER_MANAGER);
  }

  #write(side: Side, plural: string, object: KubeObject): void {
    const isThere =
      this.#clusters[side].get(plural, keyOf({ namespace: '', ...object.metadata })) !== undefined;
    const typed = { ...typeOf(plural), ...object };
    if (isThere) this.#clusters[side].update(plural, typed, USER_MANAGER);
    else this.#clusters[side].create(plural, typed, USER_MANAGER);
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

function typeOf(plural: string): { apiVersion: string; kind: string } {
  const kind = Object.entries(KINDS).find(([key]) => key === plural)?.[1] ?? '';
  return { apiVersion: plural === 'endpointslices' ? 'discovery.k8s.io/v1' : 'v1', kind };
}

/** Drift on the host has other addresses than any virtual object. */
function contentOf(plural: SyncedPlural, ips: number, isDrift: boolean) {
  const network = isDrift ? '10.8.0' : '10.0.0';
  const addresses = Array.from({ length: ips }, (_, i) => ({ ip: `${network}.${i + 1}`, hostname: `h${i}` }));
  const ports = [{ port: 80, protocol: 'TCP' }];
  if (plural === 'endpoints') return { subsets: [{ addresses, ports }] };
  const endpoints = addresses.map(({ ip, hostname }) => ({ addresses: [ip], hostname }));
  return { addressType: 'IPv4', endpoints, ports: ports.map((port) => ({ ...port, name: '' })) };
}

/** The forbidden content differs by side: on the host also content that only the data identify. */
function referencedContent(
  plural: string,
  form: Exclude<ObjectForm, 'absent'>,
  { value, side }: { readonly value: string; readonly side: Side },
) {
  const encode = (text: string): string =>
    plural === 'secrets' ? Buffer.from(text).toString('base64') : text;
  const data: Record<string, string> = { value: encode(value) };
  const immutable = form === 'immutable' ? { immutable: true } : {};
  const type = plural === 'secrets' ? { type: 'Opaque' } : {};
  if (form !== 'forbidden' || plural === 'configmaps') return { ...type, ...immutable, data };
  data[FORBIDDEN] = encode(value);
  const choice = Number(value.slice(1)) % 4;
  const kubeconfig = { clusters: [], users: [{ name: 'admin' }] };
  if (choice === 3 && side === 'host')
    return { type: 'Opaque', data: { ...data, config: encode(JSON.stringify(kubeconfig)) } };
  return { type: FORBIDDEN_TYPES[choice % 3] ?? '', data };
}

/** An API server demands the annotation with the type. */
function metadataOf(where: NamespacedName, type: string | undefined): KubeObject['metadata'] {
  const isToken = type === 'kubernetes.io/service-account-token';
  return {
    ...where,
    ...(isToken ? { annotations: { 'kubernetes.io/service-account.name': 'default' } } : {}),
  };
}
