/** Results of a dry run: the writes that the API server accepted with `dryRun=All`, and the objects that cannot be synced. */

import type { Logger } from '../../base/logger.ts';
import type { ClusterName } from '../../kube/types.ts';
import type { KubeObject, ObjectKey } from '../../kube/object.ts';
import { objectDiff } from './object-diff.ts';

export interface DryRunRow {
  readonly cluster: ClusterName;
  readonly group: string;
  readonly kind: string;
  readonly key: ObjectKey;
  /** A verb, or `failed`. */
  readonly action: string;
  readonly reason: string;
}

export type VirtualObjectId = Pick<DryRunRow, 'group' | 'kind' | 'key'>;

export class DryRun {
  readonly #logger: Logger;
  /** Verb and content of the last write that was logged, by object. */
  readonly #logged = new Map<string, string>();
  readonly #writes = new Map<string, DryRunRow>();
  readonly #failures = new Map<string, DryRunRow>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  planned(write: DryRunRow, before: KubeObject | undefined, after: KubeObject | undefined): void {
    const { cluster, group, kind, key, action: verb, reason } = write;
    const id = `${cluster} ${kind} ${group} ${key}`;
    const { lines, digest } = objectDiff(before, after, kind);
    const content = `${verb} ${digest}`;
    this.#writes.set(`${id} ${verb}`, write);
    if (this.#logged.get(id) === content) return;
    this.#logged.set(id, content);
    this.#logger.info({ cluster, kind, verb, key, reason, diff: lines }, 'would write');
  }

  /** `reason` undefined: the object can be synced. */
  settled({ group, kind, key }: VirtualObjectId, reason: string | undefined): void {
    const id = `${kind} ${group} ${key}`;
    if (reason === undefined) this.#failures.delete(id);
    else this.#failures.set(id, { cluster: 'virtual', group, kind, key, action: 'failed', reason });
  }

  rows(): readonly DryRunRow[] {
    return [...sorted(this.#writes), ...sorted(this.#failures)];
  }
}

function sorted(rows: ReadonlyMap<string, DryRunRow>): readonly DryRunRow[] {
  return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}
