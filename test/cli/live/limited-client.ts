/** A client of a cluster in memory whose user may not read everything. */

import { MemoryClient, type MemoryCluster } from '../../../src/kube/memory-cluster.ts';
import type { Resource } from '../../../src/kube/object.ts';
import { failure } from '../../../src/kube/status-error.ts';

export class LimitedClient extends MemoryClient {
  readonly #forbidden: string;

  /** `forbidden`: a plural, or `NAMESPACE/PLURAL`. */
  constructor(memory: MemoryCluster, forbidden: string) {
    super(memory, { manager: 'test' });
    this.#forbidden = forbidden;
  }

  override async get(...args: Parameters<MemoryClient['get']>): ReturnType<MemoryClient['get']> {
    this.#check(args[0], args[1].namespace);
    return super.get(...args);
  }

  override async list(...args: Parameters<MemoryClient['list']>): ReturnType<MemoryClient['list']> {
    this.#check(args[0], args[1]?.namespace ?? '');
    return super.list(...args);
  }

  #check({ plural }: Resource, namespace: string): void {
    if ([plural, `${namespace}/${plural}`].includes(this.#forbidden))
      throw failure(403, 'Forbidden', `${plural} is forbidden`);
  }
}
