/** Reads of the present, straight from the host: what one replica wrote, every other one sees at once. */

import type { StoredEntry, StoreKey } from '../../store.ts';
import type { DamageReport } from '../codec/damage-report.ts';
import type { HostSecrets } from '../host/host-secrets.ts';
import type { SecretCache } from './secret-cache.ts';
import type { RetryBudget } from '../host/retry-budget.ts';
import { decodeSecret } from '../codec/secret-codec.ts';
import type { SecretNames } from '../codec/secret-names.ts';

/** What is in the place of a key. */
export type Seen =
  | { readonly state: 'entry'; readonly entry: StoredEntry; readonly writeId: string }
  | { readonly state: 'missing' }
  /** A Secret that is no object of the store; `why` says so to people. */
  | { readonly state: 'damaged'; readonly why: string }
  /** A Secret whose deletion somebody's finalizer holds back. */
  | { readonly state: 'terminating'; readonly why: string };

export interface SecretReaderOptions {
  readonly names: SecretNames;
  readonly secrets: HostSecrets;
  readonly cache: SecretCache;
  readonly damage: DamageReport;
  /** Told of every moment that was read. */
  readonly observed: (revision: number) => void;
}

export class SecretReader {
  readonly #options: SecretReaderOptions;

  constructor(options: SecretReaderOptions) {
    this.#options = options;
  }

  async see(key: StoreKey, budget: RetryBudget): Promise<Seen> {
    const { names, secrets, cache, damage, observed } = this.#options;
    const name = names.object(key);
    const secret = await budget.read((request) => secrets.get(name, request));
    if (secret === undefined) return { state: 'missing' };
    const decoded = decodeSecret(names, secret, cache.held(name));
    switch (decoded.state) {
      case 'held':
        observed(decoded.entry.revision);
        return { state: 'entry', entry: decoded.entry, writeId: decoded.writeId };
      case 'damaged':
        damage.found(secret, decoded.why);
        return {
          state: 'damaged',
          why: `its Secret ${name} cannot be read, ${decoded.why}: put it back from a backup, or delete it`,
        };
      case 'terminating':
        return {
          state: 'terminating',
          why: `its Secret ${name} is held back by a finalizer: whoever put that there has to take it away`,
        };
    }
  }

  /** Where the counter stands now. */
  async revision(budget: RetryBudget): Promise<number> {
    const revision = await budget.read((request) => this.#options.secrets.revision(request));
    this.#options.observed(revision);
    return revision;
  }
}
