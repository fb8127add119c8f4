/** What the caches of all members hold together. Beyond the limit, the largest member of the namespace that has most is ended. */

import { CacheBudget, type CacheLimits } from '../kube/informer/cache-budget.ts';

export class SharedCaches {
  readonly #bytesMax: number;
  /** Those that are not ended, with their namespaces. */
  readonly #budgets = new Map<CacheBudget, string>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  /** For a member that needs this many bytes: that much is free. */
  hasRoom(bytes: number): boolean {
    return this.#bytes + bytes <= this.#bytesMax;
  }

  /** Of a member. What it holds counts until it holds nothing, or is ended for the others. */
  budget(namespace: string, limits: CacheLimits): CacheBudget {
    const budget: CacheBudget = new CacheBudget(limits, (bytes) => {
      if (!this.#budgets.has(budget)) return;
      this.#bytes += bytes;
      if (bytes > 0) this.#check();
    });
    this.#budgets.set(budget, namespace);
    return budget;
  }

  /** The member is stopped. */
  release(budget: CacheBudget): void {
    if (this.#budgets.delete(budget)) this.#bytes -= budget.bytes;
  }

  #check(): void {
    while (this.#bytes > this.#bytesMax) {
      const largest = this.#largest();
      if (largest === undefined) return;
      const found = this.#bytes;
      this.release(largest);
      largest.end({ of: 'bytes of all members', found, max: this.#bytesMax });
    }
  }

  #largest(): CacheBudget | undefined {
    const totals = new Map<string, number>();
    for (const [{ bytes }, namespace] of this.#budgets)
      totals.set(namespace, (totals.get(namespace) ?? 0) + bytes);
    const [most = ''] = maxBy([...totals], ([, bytes]) => bytes) ?? [];
    const own = [...this.#budgets].filter(([, namespace]) => namespace === most);
    return maxBy(own, ([{ bytes }]) => bytes)?.[0];
  }
}

function maxBy<T>(all: readonly T[], size: (one: T) => number): T | undefined {
  return all.reduce<T | undefined>(
    (best, one) => (best === undefined || size(one) > size(best) ? one : best),
    undefined,
  );
}
