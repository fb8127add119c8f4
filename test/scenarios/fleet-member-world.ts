/** Worlds whose virtual cluster is one member of a fleet: scenarios of one virtual cluster run with the settings of a fleet, which syncs a neighbour, too. */

import { deepStrictEqual } from 'node:assert/strict';
import { isJsonObject, type JsonObject } from '../../src/base/json.ts';
import {
  annotating,
  FLEET_NAMESPACE,
  LocalFleet,
  newEmbeddedFleet,
  SWITCHED_OFF,
  type FleetWorld,
  type Installed,
} from './fleet-world.ts';
import { World, type Installation, type NewWorld, type StartOptions } from './world.ts';

/** The indices of their virtual clusters. */
const [OWN, NEIGHBOUR] = [0, 1];

export const newFleetMemberWorld: NewWorld = async (options) => {
  const fleet = await newEmbeddedFleet();
  const { kubeconfigPath } = await fleet.virtual(OWN);
  return World.open(
    {
      kind: 'embedded',
      virtual: { kubeconfigPath },
      host: fleet.host,
      userKubeconfig: () => Promise.reject(new Error('a member has the kubeconfig that its Secret holds')),
      stop: (component) => Promise.reject(new Error(`an embedded ${component} cannot be stopped`)),
      start: (component) => Promise.reject(new Error(`an embedded ${component} cannot be started`)),
      installation: new Member(fleet),
      [Symbol.asyncDispose]: () => fleet[Symbol.asyncDispose](),
    },
    options,
  );
};

class Member implements Installation {
  readonly #world: FleetWorld;
  #neighbour: Installed | undefined;

  constructor(world: FleetWorld) {
    this.#world = world;
  }

  /** Fields that no member has are those of the fleet, or the defaults of its members. */
  async configuration(world: World, { config = {} }: StartOptions, httpPort: number): Promise<JsonObject> {
    const { endpointSyncer = {}, managementApi = {}, ...rest } = config;
    const { sandbox = {}, ...own } = isJsonObject(endpointSyncer) ? endpointSyncer : {};
    const values = { sync: { toHost: SWITCHED_OFF } };
    const [namespace, neighbours] = [world.hostNamespace, `${world.hostNamespace}-neighbour`];
    await world.hostNamespaceNamed(FLEET_NAMESPACE);
    const member = await this.#world.install(world.vcluster, { index: OWN, namespace, values });
    await this.#world.setOverlay(member, { endpointSyncer: own, ...rest });
    this.#neighbour = await this.#world.install('neighbour', {
      index: NEIGHBOUR,
      namespace: neighbours,
      values: annotating('us'),
    });
    return {
      endpointSyncer: {
        host: { kubeconfig: world.host.kubeconfigPath, namespace: FLEET_NAMESPACE },
        http: { bindAddress: `127.0.0.1:${httpPort}` },
        log: { level: 'info', format: 'json' },
        fleet: { enabled: true, namespaces: { include: [namespace, neighbours] } },
        defaults: { sandbox },
      },
      managementApi,
    };
  }

  async start(configPath: string): Promise<LocalFleet> {
    await using resources = new AsyncDisposableStack();
    const fleet = resources.use(await LocalFleet.start(configPath, {}));
    await fleet.whenMetric('endpoint_syncer_fleet_members', (members) => members === 2, { state: 'joined' });
    resources.move();
    return fleet;
  }

  /** Whatever the tests did, the neighbour is synced. */
  async ending(): Promise<void> {
    if (this.#neighbour === undefined) return;
    await this.#world.createEndpoints(this.#neighbour, 'last', '10.8.0.1');
    const copy = await this.#world.whenCopied(this.#neighbour, 'last', '10.8.0.1');
    deepStrictEqual(copy.metadata.annotations?.['example.com/by'], 'us');
  }
}
