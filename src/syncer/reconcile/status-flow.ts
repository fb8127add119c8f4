/** The status of a host copy, which goes to the virtual object as a write of its own. */

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

  /** Undefined: the virtual object has the status already. `virtual`, `host`: as they are after the other writes. */
  async copy(seen: Observation, virtual: KubeObject, host: KubeObject): Promise<ReconcileResult | undefined> {
    const { kind, contention } = this.#options;
    const patch = kind.statusPatch(virtual, host);
    if (patch === undefined) return undefined;
    // The pair was in step with this state of the host, so another client of the virtual cluster has written the status since.
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

  /** A status that came from a copy goes with it. */
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
