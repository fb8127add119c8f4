/** Reads the current state from the host, so that every replica sees the writes of all others. */

import type { StoredEntry, StoreKey } from '../../store.ts';
import type { DamageReport } from '../codec/damage-report.ts';
import type { HostSecrets } from '../host/host-secrets.ts';
import type { SecretCache } from './secret-cache.ts';
import type { RetryBudget } from '../host/retry-budget.ts';
import { decodeSecret } from '../codec/secret-codec.ts';
import type { SecretNames } from '../codec/secret-names.ts';

/** The result of looking up a key. */
export type LookUp =
  | { readonly state: 'entry'; readonly entry: StoredEntry; readonly writeId: string }
  | { readonly state: 'missing' }
  /** The Secret is not a valid object of the store; `why` is for the operator. */
  | { readonly state: 'damaged'; readonly why: string }
  /** The Secret is being deleted, but has a finalizer. */
  | { readonly state: 'terminating'; readonly why: string };

export interface SecretReaderOptions {
  readonly names: SecretNames;
  readonly secrets: HostSecrets;
  readonly cache: SecretCache;
  readonly damage: DamageReport;
  /** Called with every revision that was read. */
  readonly observed: (revision: number) => void;
}

export class SecretReader {
  readonly #options: SecretReaderOptions;

  constructor(options: SecretReaderOptions) {
    this.#options = options;
  }

  async lookUp(key: StoreKey, budget: RetryBudget): Promise<LookUp> {
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
          why: `its Secret ${name} cannot be read, ${decoded.why}: restore it from a backup, or delete it`,
        };
      case 'terminating':
        return {
          state: 'terminating',
          why: `its Secret ${name} is being deleted but has a finalizer: remove the finalizer`,
        };
    }
  }

  /** The current revision. */
  async revision(budget: RetryBudget): Promise<number> {
    const revision = await budget.read((request) => this.#options.secrets.revision(request));
    this.#options.observed(revision);
    return revision;
  }
}
