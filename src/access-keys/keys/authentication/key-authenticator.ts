/** Who a bearer token in the form of an access key belongs to. */

import { failure } from '../../../apiserver/status.ts';
import type { UserInfo } from '../../../apiserver/request/user.ts';
import { sleep, type Clock } from '../../../base/clock.ts';
import { TokenBucket, type Rate } from '../../../base/token-bucket.ts';
import { isSameDigest, type KeyDigests, type PresentedCredential } from '../../credentials/key-digests.ts';
import { EndedKeys } from './ended-keys.ts';
import type { KeyActivity } from './key-activity.ts';
import type { KeyIndex } from '../index/key-index.ts';
import type { IndexedCredential, IndexedKey } from '../index/key-record.ts';

/** In these words clients recognise that a login has ended. */
export const EXPIRED_MESSAGE = 'platform access key expired. Please login again';
export const ROTATED_MESSAGE = 'platform access key was rotated. Use its new secret';
export const DISABLED_MESSAGE = 'platform access key is disabled. Enable it or use another one';

/** Looks at the store on behalf of unknown keys: so many at once, then one in 100 ms. */
const LOOKS: Rate = { burst: 20, perSecond: 10 };
const LOOK_INTERVAL_MS = 100;
/** The notes of other replicas are not read more often than this on behalf of expired keys. */
const NOTES_AGE_MS = 1_000;

export interface KeyAuthenticatorOptions {
  readonly digests: KeyDigests;
  readonly index: KeyIndex;
  readonly activity: KeyActivity;
  readonly clock: Clock;
}

interface FoundKey {
  readonly key: IndexedKey;
  readonly credential: IndexedCredential;
}

export class KeyAuthenticator {
  readonly #options: KeyAuthenticatorOptions;
  readonly #looks: TokenBucket;
  /** Compared with where there is no key, so that no answer comes faster for that. */
  readonly #nobody = Buffer.alloc(32);
  readonly #stopping = new AbortController();
  /** A look that has not begun: everybody who comes until then shares it. */
  #nextLook: Promise<void> | undefined;
  #look: Promise<void> = Promise.resolve();
  #notes: Promise<void> | undefined;
  #notesMs = Number.NEGATIVE_INFINITY;
  readonly #ended: EndedKeys;

  constructor(options: KeyAuthenticatorOptions) {
    this.#options = options;
    const { index, clock } = options;
    this.#ended = new EndedKeys(clock);
    index.onChange((change) => this.#ended.noteChange(change, (key) => index.activityMs(key)));
    this.#looks = new TokenBucket(LOOKS, options.clock);
  }

  /**
   * Undefined: not a key, an unknown one, a wrong secret, or a key that is being deleted. Throws a 401 `StatusError` that says more only
   * for a secret that was proven: expired, disabled, or replaced by another. Rejects with `StoreError` when an unknown key cannot be looked for.
   */
  async authenticate(token: string): Promise<UserInfo | undefined> {
    const credential = this.#options.digests.presented(token);
    if (!credential) return undefined;
    let found = this.#find(credential);
    if (!found) {
      // Another replica may have made it a moment ago. Also for a known id with a wrong secret: both must take the same time.
      await this.#lookAgain();
      found = this.#find(credential);
    }
    if (!found && this.#ended.has(credential)) throw failure(401, 'Unauthorized', EXPIRED_MESSAGE);
    if (!found || found.key.isDeleted) return undefined;
    const { key, credential: secret } = found;
    if (secret.untilMs !== undefined && secret.untilMs <= this.#options.clock.now()) {
      throw failure(401, 'Unauthorized', ROTATED_MESSAGE);
    }
    if (this.#isExpired(key) && !(await this.#isUsedElsewhere(key))) {
      throw failure(401, 'Unauthorized', EXPIRED_MESSAGE);
    }
    if (key.isDisabled) throw failure(401, 'Unauthorized', DISABLED_MESSAGE);
    return secret.user;
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** The key, and which of its secrets was sent. */
  #find({ id, digest }: PresentedCredential): FoundKey | undefined {
    const candidates = this.#options.index.byCredential(id);
    if (candidates.length === 0) isSameDigest(this.#nobody, digest);
    for (const key of candidates) {
      for (const credential of key.credentials) {
        if (credential.id === id && isSameDigest(credential.digest, digest)) return { key, credential };
      }
    }
    return undefined;
  }

  #isExpired(key: IndexedKey): boolean {
    const endMs = this.#options.index.expiresAtMs(key);
    return endMs !== undefined && endMs <= this.#options.clock.now();
  }

  /** A key that lives from its last use may have been used at another replica. */
  async #isUsedElsewhere(key: IndexedKey): Promise<boolean> {
    if (!key.isAfterActivity) return false;
    const nowMs = this.#options.clock.monotonicMs();
    if (!this.#notes && nowMs - this.#notesMs >= NOTES_AGE_MS) {
      this.#notesMs = nowMs;
      this.#notes = this.#options.activity.read().finally(() => {
        this.#notes = undefined;
      });
    }
    await this.#notes;
    return !this.#isExpired(key);
  }

  #lookAgain(): Promise<void> {
    this.#nextLook ??= this.#takeLook();
    return this.#nextLook;
  }

  async #takeLook(): Promise<void> {
    const { clock, index } = this.#options;
    const { signal } = this.#stopping;
    await this.#look.catch(() => undefined);
    while (this.#looks.take() > 0 && !signal.aborted) await sleep(clock, LOOK_INTERVAL_MS, signal);
    this.#nextLook = undefined;
    this.#look = index.catchUp();
    await this.#look;
  }
}
