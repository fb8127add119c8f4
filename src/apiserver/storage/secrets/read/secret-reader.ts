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

/** The newest revision of the host that this replica knows. */
export interface KnownRevisions {
  newest(): string;
  /** `knownWhenSent`: the {@link newest} when a request was sent whose response cannot show an older revision, unless the host was restored. */
  observe(revision: number, knownWhenSent?: string): void;
}

export interface SecretReaderOptions {
  readonly names: SecretNames;
  readonly secrets: HostSecrets;
  readonly cache: SecretCache;
  readonly damage: DamageReport;
  readonly revisions: KnownRevisions;
}

export class SecretReader {
  readonly #options: SecretReaderOptions;

  constructor(options: SecretReaderOptions) {
    this.#options = options;
  }

  async lookUp(key: StoreKey, budget: RetryBudget): Promise<LookUp> {
    const { names, secrets, cache, damage, revisions } = this.#options;
    const name = names.object(key);
    const secret = await budget.read((request) => secrets.get(name, request));
    if (secret === undefined) return { state: 'missing' };
    const decoded = decodeSecret(names, secret, cache.held(name));
    switch (decoded.state) {
      case 'held':
        revisions.observe(decoded.entry.revision);
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
    const { secrets, revisions } = this.#options;
    const known = revisions.newest();
    const revision = await budget.read((request) => secrets.revision(request));
    revisions.observe(revision, known);
    return revision;
  }
}
