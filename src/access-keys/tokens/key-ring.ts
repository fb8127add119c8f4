/** The signing keys of all replicas, as this one knows them: read from the store, rotated when it is time, whoever comes first. */

import type { CryptoKey } from 'jose';
import { InvariantError } from '../../base/errors.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { StoreError, type Store } from '../../apiserver/storage/store.ts';
import type { Seal } from '../types.ts';
import { planRotation, signingKeyAt, type RotationPlan } from './rotation.ts';
import {
  generateSigningKey,
  openPrivateKey,
  openPublicKey,
  readSigningKey,
  SIGNING_KEYS,
  signingKeyName,
  withTokenSecondsMax,
  type SigningKey,
} from './signing-key.ts';

export interface KeyRingOptions {
  readonly store: Store;
  readonly seal: Seal;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The longest life of a token, in seconds. */
  readonly tokenSecondsMax: number;
}

/** A copy is as good as new for this long. Much shorter than a key is published before it signs. */
const FRESH_MS = 30_000;
/** While the store does not answer, a copy serves on for this long. */
const STALE_MS_MAX = 10 * 60_000;
/** Unknown key ids, which anybody can send, make for one look into the store in this time. */
const UNKNOWN_KID_MS = 1_000;
/** Much shorter than a key is published before it signs. */
const ROTATION_CHECK_MS = 60 * 60_000;
/** Of changes that meet those of other replicas. */
const ATTEMPTS_MAX = 10;

export class KeyRing {
  readonly #options: KeyRingOptions;
  #keys: readonly SigningKey[] = [];
  #loadedAtMs = Number.NEGATIVE_INFINITY;
  #loading: Promise<void> | undefined;
  #timer: Timer | undefined;
  #isStopped = false;
  /** By kid. */
  readonly #private = new Map<string, Promise<CryptoKey>>();
  readonly #public = new Map<string, Promise<CryptoKey>>();

  constructor(options: KeyRingOptions) {
    this.#options = options;
  }

  /** Throws a `TerminalError` when the stored keys cannot be opened. */
  async start(): Promise<void> {
    await this.#load();
    const current = this.#signing();
    await this.#privateKey(current);
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#loading?.catch(() => undefined);
  }

  /** The key to sign with now. */
  async signer(): Promise<{ readonly kid: string; readonly key: CryptoKey }> {
    await this.#fresh(FRESH_MS);
    const current = this.#signing();
    return { kid: current.kid, key: await this.#privateKey(current) };
  }

  /** The public key of a token's header; undefined: it is none of ours. */
  async verifier(kid: string): Promise<CryptoKey | undefined> {
    let found = this.#find(kid);
    if (found === undefined) {
      await this.#fresh(UNKNOWN_KID_MS);
      found = this.#find(kid);
    }
    if (found === undefined) return undefined;
    return cached(this.#public, kid, () => openPublicKey(found));
  }

  /** Every key of which there can be a token, and those that will sign next. */
  async published(): Promise<readonly SigningKey[]> {
    await this.#fresh(FRESH_MS);
    return this.#keys;
  }

  #find(kid: string): SigningKey | undefined {
    return this.#keys.find((key) => key.kid === kid);
  }

  #signing(): SigningKey {
    const key = signingKeyAt(this.#keys, this.#options.clock.now());
    if (key === undefined) throw new InvariantError('there is no signing key after the keys were loaded');
    return key;
  }

  #privateKey(key: SigningKey): Promise<CryptoKey> {
    return cached(this.#private, key.kid, () => openPrivateKey(key, this.#options.seal));
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#timer = this.#options.clock.schedule(ROTATION_CHECK_MS, () => {
      this.#load()
        .catch((error: unknown) => this.#options.logger.error({ err: error }, 'signing keys not rotated'))
        .finally(() => this.#schedule());
    });
  }

  /** Loads unless that was done in the last `ageMs`. A store that does not answer is no reason to forget what it said. */
  async #fresh(ageMs: number): Promise<void> {
    const age = Math.abs(this.#options.clock.now() - this.#loadedAtMs);
    if (age < ageMs) return;
    try {
      await this.#load();
    } catch (error) {
      if (!(error instanceof StoreError) || age > STALE_MS_MAX) throw error;
      this.#options.logger.warn({ err: error }, 'signing keys not read again: the store does not answer');
    }
  }

  #load(): Promise<void> {
    this.#loading ??= this.#read().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** Reads and rotates, until there is nothing left to change. */
  async #read(): Promise<void> {
    const { store, clock, tokenSecondsMax } = this.#options;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { entries } = await store.list({ resource: SIGNING_KEYS });
      const keys = entries.map(readSigningKey).sort((a, b) => a.sequence - b.sequence);
      const plan = planRotation(keys, clock.now(), tokenSecondsMax);
      if (!plan.make && plan.raise.length === 0 && plan.remove.length === 0) {
        this.#take(keys);
        return;
      }
      await this.#apply(plan);
    }
    throw new StoreError('conflict', 'the signing keys are being changed by others all the time');
  }

  #take(keys: readonly SigningKey[]): void {
    this.#keys = keys;
    this.#loadedAtMs = this.#options.clock.now();
    for (const cache of [this.#private, this.#public]) {
      for (const kid of cache.keys()) if (this.#find(kid) === undefined) cache.delete(kid);
    }
  }

  /** Whoever writes first wins, and everybody reads again. */
  async #apply({ make, raise, remove }: RotationPlan): Promise<void> {
    const { store, seal, logger, tokenSecondsMax } = this.#options;
    if (make) {
      const key = { resource: SIGNING_KEYS, namespace: '', name: signingKeyName(make.sequence) };
      const entry = await unlessOvertaken(store.create(key, await generateSigningKey(make, seal)));
      const signsFrom = new Date(make.signsFromMs).toISOString();
      if (entry) logger.info({ kid: readSigningKey(entry).kid, signsFrom }, 'made a signing key');
    }
    for (const key of raise) {
      const { key: at, revision } = key.entry;
      await unlessOvertaken(store.update(at, withTokenSecondsMax(key, tokenSecondsMax), revision));
    }
    for (const { entry, kid } of remove) {
      const removed = await unlessOvertaken(store.delete(entry.key, entry.revision));
      if (removed) logger.info({ kid }, 'removed a signing key: its last token is over');
    }
  }
}

async function unlessOvertaken<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (error) {
    const overtaken = ['exists', 'missing', 'conflict'];
    if (error instanceof StoreError && overtaken.includes(error.code)) return undefined;
    throw error;
  }
}

/** A failure is not kept: the next call tries again. */
function cached(
  cache: Map<string, Promise<CryptoKey>>,
  kid: string,
  open: () => Promise<CryptoKey>,
): Promise<CryptoKey> {
  const known = cache.get(kid);
  if (known) return known;
  const opened = open();
  cache.set(kid, opened);
  opened.catch(() => cache.delete(kid));
  return opened;
}
