/** Syncs the status of a host copy to the virtual object, in a separate write. */

import type { JsonObject } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { Observation } from './decide/decide.ts';
import { contestedStatusNotice } from './notices.ts';
import type { PairMemory } from './pair-memory.ts';
import type { ReconcilerOptions } from './reconciler-options.ts';
import type { ReconcileResult } from './result.ts';

export class StatusFlow {
  readonly #options: ReconcilerOptions;
  readonly #memory: PairMemory;

  constructor(options: ReconcilerOptions, memory: PairMemory) {
    this.#options = options;
    this.#memory = memory;
  }

  /** Undefined: the virtual object already has the status. `virtual`, `host`: their state after the other writes. */
  async copy(seen: Observation, virtual: KubeObject, host: KubeObject): Promise<ReconcileResult | undefined> {
    const { kind, contention } = this.#options;
    const patch = kind.statusPatch(virtual, host);
    if (patch === undefined) return undefined;
    // The pair was in sync with this state of the host, so another client of the virtual cluster has written the status since.
    const isOverwritten = this.#memory.isHostUnchanged({ ...seen, host });
    const verdict = isOverwritten ? contention.noteDrift(seen.key) : undefined;
    if (verdict !== undefined && verdict.waitMs > 0) {
      if (verdict.isReportable) this.#memory.report(seen, contestedStatusNotice(virtual, verdict.waitMs));
      return { outcome: 'waiting', reason: 'Contested', waitMs: verdict.waitMs };
    }
    const reason = 'status of the host copy';
    const patched = await this.#patch(virtual, patch, reason);
    this.#memory.remember(seen, patched ?? virtual, host);
    return { outcome: 'updated', reason };
  }

  /** Removes the status that came from a deleted copy. */
  async clear({ virtual }: Observation, host: KubeObject): Promise<void> {
    const { kind } = this.#options;
    if (virtual === undefined || kind.statusPatch(virtual, host) !== undefined) return;
    const patch = kind.statusPatch(virtual, undefined);
    if (patch !== undefined) await this.#patch(virtual, patch, 'the host copy is deleted');
  }

  #patch(virtual: KubeObject, patch: JsonObject, reason: string): Promise<KubeObject | undefined> {
    const { name, namespace = '', resourceVersion = null } = virtual.metadata;
    const body = { ...patch, metadata: { resourceVersion } };
    return this.#options.virtual.writer.mergePatch({ name, namespace }, body, reason, 'status');
  }
}
