/** The vClusters of each namespace that are more than the fleet syncs there. */

import type { FleetConfig } from '../syncer/config/config.ts';
import { parseKey, type ObjectKey } from '../kube/object.ts';
import { surplusOf } from './decide-member.ts';
import type { FleetDiscovery } from './discovery.ts';

export class Surplus {
  readonly #discovery: Pick<FleetDiscovery, 'workloadsIn'>;
  readonly #changed: (vcluster: ObjectKey) => void;
  /** By namespace. */
  readonly #known = new Map<string, ReadonlySet<ObjectKey>>();
  readonly #outdated = new Set<string>();
  /** By namespace: those that this replica would sync. */
  readonly #shown = new Map<string, Set<ObjectKey>>();

  /** `changed` gets each vCluster that belongs to it, or does not any more. */
  constructor(discovery: Pick<FleetDiscovery, 'workloadsIn'>, changed: (vcluster: ObjectKey) => void) {
    this.#discovery = discovery;
    this.#changed = changed;
  }

  /** A workload in the namespace has changed. */
  outdated(namespace: string): void {
    this.#outdated.add(namespace);
  }

  /** The limit has changed, or who is selected. */
  clear(): void {
    for (const namespace of this.#known.keys()) this.#outdated.add(namespace);
  }

  has(key: ObjectKey, fleet: FleetConfig): boolean {
    const { namespace } = parseKey(key);
    const before = this.#known.get(namespace);
    if (before !== undefined && !this.#outdated.delete(namespace)) return before.has(key);
    this.#outdated.delete(namespace);
    const surplus = surplusOf(this.#discovery.workloadsIn(namespace), fleet);
    this.#known.set(namespace, surplus);
    for (const one of surplus.symmetricDifference(before ?? new Set<ObjectKey>()))
      if (one !== key && before !== undefined) this.#changed(one);
    return surplus.has(key);
  }

  /** True if it was not shown before. */
  show(key: ObjectKey): boolean {
    const { namespace } = parseKey(key);
    const shown = this.#shown.get(namespace) ?? new Set();
    if (shown.has(key)) return false;
    this.#shown.set(namespace, shown.add(key));
    return true;
  }

  hide(key: ObjectKey): void {
    const { namespace } = parseKey(key);
    const shown = this.#shown.get(namespace);
    if (shown?.delete(key) === true && shown.size === 0) this.#shown.delete(namespace);
  }

  countShown(namespace: string): number {
    return this.#shown.get(namespace)?.size ?? 0;
  }

  shown(): readonly ObjectKey[] {
    return [...this.#shown.values()].flatMap((keys) => [...keys]);
  }
}
