/** Logs once for each Secret of the store that it cannot be read. */

import type { KubeObject } from '../../../../kube/object.ts';
import type { Logger } from '../../../../base/logger.ts';

const REMEMBERED_MAX = 1000;

export class DamageReport {
  readonly #logger: Logger;
  readonly #namespace: string;
  /** Name of a Secret → its version that was reported. */
  readonly #reported = new Map<string, string>();

  constructor(logger: Logger, namespace: string) {
    this.#logger = logger;
    this.#namespace = namespace;
  }

  /** The Secret is never deleted or overwritten, so that the operator can repair it. */
  found({ metadata: { name, resourceVersion = '' } }: KubeObject, why: string): void {
    if (this.#reported.get(name) === resourceVersion) return;
    if (this.#reported.size >= REMEMBERED_MAX) this.#reported.clear();
    this.#reported.set(name, resourceVersion);
    this.#logger.warn(
      { secret: name, namespace: this.#namespace, why },
      'a Secret of the store cannot be read and is skipped: restore it from a backup, or delete it',
    );
  }
}
