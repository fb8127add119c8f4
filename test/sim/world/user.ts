/** Users and other clients: they write what an operation says, straight into a server, and never fail for long. */

import type { KubeObject } from '../../../src/kube/object.ts';
import { HOST_NAMESPACE, hostNameOf, VIRTUAL_NAMES, type VirtualName } from './names.ts';
import type { Operation, Side } from '../history/operations.ts';
import type { SimCluster } from './sim-cluster.ts';

export const USER_MANAGER = 'user';

const OPT_OUT = 'vcluster.loft.sh/controlled-by';

export class User {
  readonly #clusters: Readonly<Record<Side, SimCluster>>;

  constructor(clusters: Readonly<Record<Side, SimCluster>>) {
    this.#clusters = clusters;
  }

  /** Does what the operation says where it makes sense at the moment. */
  perform(operation: Operation): void {
    switch (operation.kind) {
      case 'put':
        return this.#put(operation);
      case 'annotate':
        return this.#editMap(operation, 'annotations');
      case 'label':
        return this.#editMap(operation, 'labels');
      case 'damage':
        return this.#editMap({ ...operation, side: 'host' }, 'annotations');
      case 'optOut': {
        const value = operation.isOut ? 'another' : null;
        return this.#editMap({ ...operation, key: OPT_OUT, value }, 'annotations');
      }
      case 'addresses': {
        const { side, object, ips } = operation;
        return this.#edit(side, object, (current) => ({
          ...current,
          subsets: subsetsOf(ips, side === 'host'),
        }));
      }
      case 'delete': {
        const name = this.#nameOn(operation.side, operation.object);
        if (this.#get(operation.side, 'endpoints', name) === undefined) return;
        return this.#clusters[operation.side].delete('endpoints', name, { manager: USER_MANAGER });
      }
      case 'service':
        return this.#service(operation);
      case 'foreign': {
        const name = this.#nameOn('host', operation.object);
        if (this.#get('host', 'endpoints', name) !== undefined) return;
        const foreign = {
          apiVersion: 'v1',
          kind: 'Endpoints',
          metadata: { ...name },
          subsets: subsetsOf(1, true),
        };
        this.#clusters.host.create('endpoints', foreign, USER_MANAGER);
        return;
      }
      default:
      // The rest is done by the run itself.
    }
  }

  #put({ object, ips, annotations, labels }: Extract<Operation, { kind: 'put' }>): void {
    const name = this.#nameOn('virtual', object);
    const metadata = { ...name, annotations: { ...annotations }, labels: { ...labels } };
    const wanted: KubeObject = {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata,
      subsets: subsetsOf(ips, false),
    };
    const { virtual } = this.#clusters;
    if (this.#get('virtual', 'endpoints', name) === undefined)
      virtual.create('endpoints', wanted, USER_MANAGER);
    else virtual.update('endpoints', wanted, USER_MANAGER);
  }

  #service({ side, object, form }: Extract<Operation, { kind: 'service' }>): void {
    const name = this.#nameOn(side, object);
    const cluster = this.#clusters[side];
    const current = this.#get(side, 'services', name);
    if (form === 'absent') {
      if (current !== undefined) cluster.delete('services', name, { manager: USER_MANAGER });
      // An API server removes the Endpoints together with their Service.
      const endpoints = this.#get(side, 'endpoints', name);
      if (current !== undefined && endpoints !== undefined)
        cluster.delete('endpoints', name, { manager: 'apiserver' });
      return;
    }
    const spec = form === 'selector' ? { selector: { app: name.name } } : {};
    const wanted: KubeObject = { apiVersion: 'v1', kind: 'Service', metadata: { ...name }, spec };
    if (current === undefined) cluster.create('services', wanted, USER_MANAGER);
    else cluster.update('services', wanted, USER_MANAGER);
  }

  #editMap(
    { side, object, key, value }: { side: Side; object: number; key: string; value: string | null },
    member: 'annotations' | 'labels',
  ): void {
    this.#edit(side, object, (current) => {
      const map = { ...current.metadata[member] };
      if (value === null) delete map[key];
      else map[key] = value;
      return { ...current, metadata: { ...current.metadata, [member]: map } };
    });
  }

  #edit(side: Side, object: number, change: (current: KubeObject) => KubeObject): void {
    const current = this.#get(side, 'endpoints', this.#nameOn(side, object));
    if (current !== undefined) this.#clusters[side].update('endpoints', change(current), USER_MANAGER);
  }

  #get(side: Side, plural: string, { namespace, name }: VirtualName): KubeObject | undefined {
    return this.#clusters[side].get(plural, `${namespace}/${name}`);
  }

  #nameOn(side: Side, object: number): VirtualName {
    const name = VIRTUAL_NAMES[object];
    if (name === undefined) throw new Error(`there is no object ${object}`);
    return side === 'virtual' ? name : { namespace: HOST_NAMESPACE, name: hostNameOf(name) };
  }
}

/** Drift on the host has other addresses than any virtual object. */
function subsetsOf(ips: number, isDrift: boolean) {
  const network = isDrift ? '10.8.0' : '10.0.0';
  const addresses = Array.from({ length: ips }, (_, i) => ({ ip: `${network}.${i + 1}`, hostname: `h${i}` }));
  return [{ addresses, ports: [{ port: 80, protocol: 'TCP' }] }];
}
