/** Two agents that keep one annotation up to date, one in each cluster, each with its own value: as Rancher's on both sides do. */

import { objectKey } from '../../../src/kube/object.ts';
import type { SyncedPlural } from '../history/operations.ts';
import { hostKeyOf, VIRTUAL_NAMES, type NameSettings } from './names.ts';
import type { VirtualClock } from '../../../src/base/clock.ts';
import type { SimCluster } from './sim-cluster.ts';
import type { User } from './user.ts';

/** No user edits it, and no patch changes it. */
export const AGENT_KEY = 'example.com/agent';

const REACTION_MS = 20;

interface AgentOptions {
  readonly clusters: Readonly<Record<'virtual' | 'host', SimCluster>>;
  readonly clock: VirtualClock;
  readonly user: User;
  readonly names: () => NameSettings;
}

/** Both agents write, each after every change of its object, until `forMs` have passed. */
export function startAgents(
  { clusters, clock, user, names }: AgentOptions,
  {
    plural,
    object,
    forMs,
  }: { readonly plural: SyncedPlural; readonly object: number; readonly forMs: number },
): void {
  const name = VIRTUAL_NAMES[object];
  if (name === undefined) throw new Error(`there is no object ${object}`);
  const untilMs = clock.nowMs + forMs;
  const place = { virtual: () => `${name.namespace}/${name.name}`, host: () => hostKeyOf(name, names()) };
  for (const side of ['virtual', 'host'] as const) {
    const write = (): void => {
      const current = clusters[side].get(plural, place[side]())?.metadata.annotations?.[AGENT_KEY];
      if (clock.nowMs < untilMs && current !== side)
        user.perform({ kind: 'annotate', side, plural, object, key: AGENT_KEY, value: side });
    };
    write();
    const unsubscribe = clusters[side].subscribe((change) => {
      if (change.plural === plural && objectKey(change.object) === place[side]())
        clock.schedule(REACTION_MS, write);
    });
    clock.schedule(forMs, unsubscribe);
  }
}
