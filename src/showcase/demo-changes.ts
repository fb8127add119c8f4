/** What the demo changes by itself, so that there is something to see. */

import { sleep, systemClock } from '../base/clock.ts';
import { jsonEquals, type JsonObject, mergePatch } from '../base/json.ts';
import { asJson, asObject, ENDPOINTS, isOfKind, nameOf, type KubeObject } from '../kube/object.ts';
import type { ClusterClient, ClusterName } from '../kube/types.ts';
import type { Config } from '../syncer/config/config.ts';
import { FileSync } from '../syncer/rehearsal/files.ts';
import { apiDefaults } from '../cli/offline/api-defaults.ts';
import { tell } from '../cli/output/terminal.ts';
import { DEMO_HOST_NAMESPACE, DEMO_NAMESPACE, DEMO_OWNER } from './demo-activity.ts';

const CHANGE_EVERY_MS = 4000;

interface ChangesOptions {
  readonly clients: Readonly<Record<ClusterName, ClusterClient>>;
  /** The configuration in use. */
  readonly config: () => Config;
}

/** The changed sample, or one of its states. */
type Pair = Readonly<Record<ClusterName, KubeObject>>;

/** A merge patch of one side. */
interface Edit {
  readonly cluster: ClusterName;
  readonly body: JsonObject;
}

/** Changes a sample on both sides in turn. The user may edit the patches at any time: only changes are made that a sync with them leaves as they are. */
export class DemoChanges implements AsyncDisposable {
  readonly #options: ChangesOptions;
  readonly #sync = new FileSync({ admit: apiDefaults() });

  constructor(options: ChangesOptions) {
    this.#options = options;
  }

  /** Every few seconds, until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    for (let round = 0; !signal.aborted; round++) {
      await sleep(systemClock, CHANGE_EVERY_MS, signal);
      if (signal.aborted) return;
      try {
        await this.change(round);
      } catch (error) {
        // The user of the demo may change or delete these objects.
        tell(`the demo could not change its sample: ${String(error)}`);
      }
    }
  }

  /** Returns the change of this round; undefined: the patches would not leave any as it is. */
  async change(round: number): Promise<Edit | undefined> {
    const { clients } = this.#options;
    const pair = {
      virtual: await clients.virtual.get(ENDPOINTS, { namespace: DEMO_NAMESPACE.metadata.name, name: 'db' }),
      host: await clients.host.get(ENDPOINTS, { namespace: DEMO_HOST_NAMESPACE, name: 'db-x-shop-x-demo' }),
    };
    const edits = round % 2 === 1 ? await this.#ownerEdits(pair) : [addressesEdit(round)];
    for (const edit of edits) {
      if (!(await this.#isKept(pair, edit))) continue;
      const name = nameOf(pair[edit.cluster]);
      await clients[edit.cluster].patch(ENDPOINTS, name, { type: 'merge', body: edit.body });
      return edit;
    }
    return undefined;
  }

  /** Another owner: on the host as the patches write it there, or where they do not take that back, in the virtual cluster. */
  async #ownerEdits(pair: Pair): Promise<Edit[]> {
    const owner = pair.virtual.metadata.annotations?.[DEMO_OWNER] === 'checkout' ? 'payments' : 'checkout';
    const inVirtual = ownerEdit('virtual', owner);
    const copy = await this.#synced('host', edited(pair, inVirtual));
    const onHost = copy?.metadata.annotations?.[DEMO_OWNER];
    return onHost === undefined ? [inVirtual] : [ownerEdit('host', onHost), inVirtual];
  }

  async #isKept(pair: Pair, edit: Edit): Promise<boolean> {
    const { cluster } = edit;
    const other = cluster === 'host' ? 'virtual' : 'host';
    const before = edited(pair, edit);
    const there = await this.#synced(other, before);
    const here = there && (await this.#synced(cluster, { ...before, [other]: there }));
    if (here === undefined) return false;
    return jsonEquals(mergePatch(asJson(here), edit.body), asJson(here));
  }

  /** What a sync makes of one side; undefined: it fails, or does not write it. */
  async #synced(cluster: ClusterName, { virtual, host }: Pair): Promise<KubeObject | undefined> {
    const world = { virtual: [virtual], host: [host] };
    const direction = cluster === 'host' ? 'toHost' : 'toVirtual';
    const { rendered } = await this.#sync.run(world, this.#options.config(), { direction });
    if (rendered.some(({ kind }) => kind === 'failed')) return undefined;
    const objects = rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
    return objects.find((object) => isOfKind(object, ENDPOINTS));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#sync[Symbol.asyncDispose]();
  }
}

function edited(pair: Pair, { cluster, body }: Edit): Pair {
  return { ...pair, [cluster]: asObject(mergePatch(asJson(pair[cluster]), body)) };
}

function ownerEdit(cluster: ClusterName, owner: string): Edit {
  return { cluster, body: { metadata: { annotations: { [DEMO_OWNER]: owner } } } };
}

function addressesEdit(round: number): Edit {
  const ips = round % 4 === 0 ? ['10.20.0.11', '10.20.0.12', '10.20.0.13'] : ['10.20.0.11'];
  const addresses = ips.map((ip, i) => ({ ip, hostname: `db-${i}` }));
  const subsets = [{ addresses, ports: [{ name: 'main', port: 8080, protocol: 'TCP' }] }];
  return { cluster: 'virtual', body: { subsets } };
}
