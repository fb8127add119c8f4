/** The signing keys that all replicas share: read from the store, and rotated by the first replica that finds them due. */

import type { CryptoKey } from 'jose';
import { InvariantError } from '../../base/errors.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { StoreError, type Store } from '../../apiserver/storage/store.ts';
import type { Seal } from '../credentials/master-key.ts';
import { isInSchedule, planRotation, signingKeyAt, type RotationPlan } from './rotation.ts';
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
  /** Maximum lifetime of a token, in seconds. */
  readonly tokenSecondsMax: number;
}

/** The loaded keys are used this long without a reload; much shorter than a key is published before it signs. */
const FRESH_MS = 30_000;
/** While the store fails, the loaded keys are used for this long. */
const STALE_MS_MAX = 10 * 60_000;
/** Unknown key ids, which any client can send, cause at most one reload in this time. */
const UNKNOWN_KID_MS = 1_000;
/** Much shorter than a key is published before it signs. */
const ROTATION_CHECK_MS = 60 * 60_000;
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

  /** Throws a `TerminalError` if the stored keys cannot be decrypted. */
  async start(): Promise<void> {
    await this.#load();
    await this.#privateKey(this.#signing());
    const { clock, logger } = this.#options;
    for (const key of this.#keys) {
      if (isInSchedule(key, clock.now())) continue;
      const signsFrom = new Date(key.signsFromMs).toISOString();
      logger.warn(
        { kid: key.kid, signsFrom },
        'ignoring a signing key of the future: a clock was or is wrong',
      );
    }
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#loading?.catch(() => undefined);
  }

  /** The current signing key. */
  async signer(): Promise<{ readonly kid: string; readonly key: CryptoKey }> {
    await this.#fresh(FRESH_MS);
    const current = this.#signing();
    return { kid: current.kid, key: await this.#privateKey(current) };
  }

  /** The public key with this id; undefined: unknown. */
  async verifier(kid: string): Promise<CryptoKey | undefined> {
    let found = this.#find(kid);
    if (found === undefined) {
      await this.#fresh(UNKNOWN_KID_MS);
      found = this.#find(kid);
    }
    if (found === undefined) return undefined;
    return cached(this.#public, kid, () => openPublicKey(found));
  }

  /** Every key with unexpired tokens, and the next signing key. */
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
        .catch((error: unknown) =>
          this.#options.logger.error({ err: error }, 'cannot rotate the signing keys, retrying in an hour'),
        )
        .finally(() => this.#schedule());
    });
  }

  /** Reloads keys older than `ageMs`. While the store fails, the loaded keys stay in use. */
  async #fresh(ageMs: number): Promise<void> {
    const age = Math.abs(this.#options.clock.now() - this.#loadedAtMs);
    if (age < ageMs) return;
    try {
      await this.#load();
    } catch (error) {
      if (!(error instanceof StoreError) || age > STALE_MS_MAX) throw error;
      this.#options.logger.warn({ err: error }, 'cannot reload the signing keys, using the loaded ones');
    }
  }

  #load(): Promise<void> {
    this.#loading ??= this.#read().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** Reads and rotates until no change is due. */
  async #read(): Promise<void> {
    const { store, clock, tokenSecondsMax } = this.#options;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { entries } = await store.list({ resource: SIGNING_KEYS });
      const keys = entries.map(readSigningKey).sort((a, b) => a.sequence - b.sequence);
      const plan = planRotation(keys, clock.now(), tokenSecondsMax);
      if (!plan.generate && plan.extend.length === 0 && plan.remove.length === 0) {
        this.#take(keys);
        return;
      }
      await this.#apply(plan);
    }
    throw new StoreError('conflict', 'the signing keys were changed concurrently in every attempt');
  }

  #take(keys: readonly SigningKey[]): void {
    this.#keys = keys;
    this.#loadedAtMs = this.#options.clock.now();
    for (const cache of [this.#private, this.#public]) {
      for (const kid of cache.keys()) if (this.#find(kid) === undefined) cache.delete(kid);
    }
  }

  /** The first replica to write wins; all of them read again. */
  async #apply({ generate, extend, remove }: RotationPlan): Promise<void> {
    const { store, seal, logger, tokenSecondsMax } = this.#options;
    if (generate) {
      const key = { resource: SIGNING_KEYS, namespace: '', name: signingKeyName(generate.sequence) };
      const entry = await unlessConflict(store.create(key, await generateSigningKey(generate, seal)));
      const signsFrom = new Date(generate.signsFromMs).toISOString();
      if (entry) logger.info({ kid: readSigningKey(entry).kid, signsFrom }, 'generated a signing key');
    }
    for (const key of extend) {
      const { key: at, revision } = key.entry;
      await unlessConflict(store.update(at, withTokenSecondsMax(key, tokenSecondsMax), revision));
    }
    for (const { entry, kid } of remove) {
      const removed = await unlessConflict(store.delete(entry.key, entry.revision));
      if (removed) logger.info({ kid }, 'removed a signing key without unexpired tokens');
    }
  }
}

async function unlessConflict<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (error) {
    const overtaken = ['exists', 'missing', 'conflict'];
    if (error instanceof StoreError && overtaken.includes(error.code)) return undefined;
    throw error;
  }
}

/** A failure is not cached. */
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
