/** A fleet of ten members, of which one is hostile: it controls its API server, its objects and its values. */

import type { JsonObject } from '../../src/base/json.ts';
import { ApiProxy, type ProxiedRequest, type Verdict } from '../scenarios/api-proxy.ts';
import {
  annotating,
  FLEET_NAMESPACE,
  newEmbeddedFleet,
  type FleetWorld,
  type Installed,
  type LocalFleet,
  type LocalFleetOptions,
} from '../scenarios/fleet-world.ts';

export const OTHERS = 9;

export class HostileMember implements AsyncDisposable {
  readonly world: FleetWorld;
  readonly hostile: Installed;
  readonly others: readonly Installed[];
  /** Before the API server of the hostile member. */
  readonly virtual: ApiProxy;
  /** Before the host, for all members. */
  readonly host: ApiProxy;
  readonly #stack: AsyncDisposableStack;
  readonly #start: () => Promise<LocalFleet>;
  #fleet: LocalFleet;
  #rounds = 0;

  private constructor(
    parts: Pick<HostileMember, 'world' | 'fleet' | 'hostile' | 'others' | 'virtual' | 'host'>,
    start: () => Promise<LocalFleet>,
    stack: AsyncDisposableStack,
  ) {
    this.world = parts.world;
    this.#fleet = parts.fleet;
    this.#start = start;
    this.hostile = parts.hostile;
    this.others = parts.others;
    this.virtual = parts.virtual;
    this.host = parts.host;
    this.#stack = stack;
  }

  /** All have joined, and the hostile one has the copy of `default/web` with 10.9.0.1. */
  static async open({
    limits = {},
    values = {},
    defaults = {},
    ...options
  }: Setup = {}): Promise<HostileMember> {
    await using stack = new AsyncDisposableStack();
    const world = await newEmbeddedFleet();
    const others: Installed[] = [];
    for (let at = 0; at < OTHERS; at++)
      // A sandbox process for each would be most of the work of the test.
      others.push(await world.install(`other-${at}`, at === 0 ? { values: annotating('us') } : {}));
    const hostile = await world.install('hostile', {
      labels: {},
      ...(Object.keys(values).length > 0 && { values }),
    });
    const virtual = await ApiProxy.open(hostile.virtual.kubeconfigPath);
    const host = await ApiProxy.open(world.host.kubeconfigPath);
    await world.setSecret(hostile.namespace, 'vc-hostile', { config: virtual.kubeconfig });
    await world.setWorkload(hostile, {});
    const access = { kubeconfig: world.file('host.kubeconfig', host.kubeconfig), namespace: FLEET_NAMESPACE };
    // The fleet ends before the proxies do.
    stack.use(host);
    stack.use(virtual);
    stack.use(world);
    const start = (): Promise<LocalFleet> =>
      world.start({ host: access, fleet: { limits }, defaults }, options);
    const fleet = await start();
    await world.createEndpoints(hostile, 'web', '10.9.0.1');
    await world.whenCopied(hostile, 'web', '10.9.0.1');
    for (const vcluster of [...others, hostile]) await world.whenState(fleet, vcluster, 'joined');
    return new HostileMember({ world, fleet, hostile, others, virtual, host }, start, stack.move());
  }

  get fleet(): LocalFleet {
    return this.#fleet;
  }

  /** Another process takes over, and finds everything as it is. */
  async restart(): Promise<void> {
    await this.#fleet.stop();
    this.#fleet = await this.#start();
  }

  /** One more object in each of the others: created, for one of them patched in its sandbox, updated. Each is joined afterwards. */
  async othersAreSynced(): Promise<void> {
    const name = `round-${(this.#rounds += 1)}`;
    await Promise.all(
      this.others.map(async (vcluster, at) => {
        await this.world.createEndpoints(vcluster, name, '10.1.0.1');
        const copy = await this.world.whenCopied(vcluster, name, '10.1.0.1');
        if (at === 0 && copy.metadata.annotations?.['example.com/by'] !== 'us')
          throw new Error(`the copy of ${vcluster.key} is not patched`);
        const subsets = [{ addresses: [{ ip: '10.1.0.2' }], ports: [{ port: 80, protocol: 'TCP' }] }];
        await vcluster.virtual.merge('Endpoints', ['default', name], { subsets });
        await this.world.whenCopied(vcluster, name, '10.1.0.2');
        await this.world.whenState(this.fleet, vcluster, 'joined');
      }),
    );
  }

  /** Members that the fleet has dropped because it lost its Lease. */
  dropped(): number {
    return this.fleet.log.filter(({ msg }) => String(msg).startsWith('this replica no longer syncs')).length;
  }

  /** Requests to the host for the hostile member, except for watches and its Lease. */
  isHostile({ isWatch, path }: ProxiedRequest): boolean {
    return !isWatch && path.includes(`/namespaces/${this.hostile.namespace}/`) && !path.includes('/leases');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

interface Setup extends Pick<LocalFleetOptions, 'clock'> {
  readonly limits?: JsonObject;
  /** Of every member. */
  readonly defaults?: JsonObject;
  /** Of the hostile member. */
  readonly values?: JsonObject;
}

/** An Endpoints object as its API server returns it. */
export function hostileObject(at: number, version: number): JsonObject {
  return {
    kind: 'Endpoints',
    apiVersion: 'v1',
    metadata: {
      name: `flap-${at}`,
      namespace: 'default',
      uid: `uid-${at}`,
      resourceVersion: String(version),
      annotations: { version: String(version) },
    },
    subsets: [{ addresses: [{ ip: '10.9.0.2' }], ports: [{ port: 80, protocol: 'TCP' }] }],
  };
}

/** A page of a list of Endpoints. */
export function page(items: readonly JsonObject[], next = ''): string {
  const metadata = { resourceVersion: '1000000', ...(next !== '' && { continue: next }) };
  return JSON.stringify({ kind: 'EndpointsList', apiVersion: 'v1', metadata, items });
}

export function isEndpoints({ method, path }: ProxiedRequest): boolean {
  return method === 'GET' && path.startsWith('/api/v1/endpoints');
}

const PAGE = 500;

/** An API server with so many Endpoints, all of which change all the time. */
export function flapping(count: number): (request: ProxiedRequest) => Verdict {
  let version = 2_000_000;
  function* events(): Generator<string> {
    for (;;) {
      version += 1;
      yield `${JSON.stringify({ type: 'MODIFIED', object: hostileObject(version % count, version) })}\n`;
    }
  }
  return (request) => {
    if (!isEndpoints(request)) return { kind: 'pass' };
    if (request.isWatch) return { kind: 'stream', texts: events() };
    const { searchParams } = new URL(request.path, 'http://hostile');
    const from = Number(searchParams.get('continue') ?? 0);
    const items = Array.from({ length: PAGE }, (_, at) => hostileObject(from + at, version));
    return { kind: 'pretend', body: page(items, from + PAGE < count ? String(from + PAGE) : '') };
  };
}
