/** Reads of the present, straight from the host: what one replica wrote, every other one sees at once. */

import type { StoredEntry, StoreKey } from '../types.ts';
import type { DamageReport } from './damage-report.ts';
import type { HostSecrets } from './host-secrets.ts';
import type { Mirror } from './mirror.ts';
import type { RetryBudget } from './retry-budget.ts';
import { decodeSecret } from './secret-codec.ts';
import type { SecretNames } from './secret-names.ts';

/** What is in the place of a key. */
export type Seen =
  | { readonly state: 'entry'; readonly entry: StoredEntry; readonly writeId: string }
  | { readonly state: 'missing' }
  /** A Secret that is no object of the store; `why` says so to people. */
  | { readonly state: 'damaged'; readonly why: string }
  /** A Secret whose deletion somebody's finalizer holds back. */
  | { readonly state: 'terminating'; readonly why: string };

export interface ReaderOptions {
  readonly names: SecretNames;
  readonly secrets: HostSecrets;
  readonly mirror: Mirror;
  readonly damage: DamageReport;
  /** Told of every moment that was read. */
  readonly observed: (revision: number) => void;
}

export class Reader {
  readonly #options: ReaderOptions;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  async see(key: StoreKey, budget: RetryBudget): Promise<Seen> {
    const { names, secrets, mirror, damage, observed } = this.#options;
    const name = names.object(key);
    const secret = await budget.read((request) => secrets.get(name, request));
    if (secret === undefined) return { state: 'missing' };
    const decoded = decodeSecret(names, secret, mirror.held(name));
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
