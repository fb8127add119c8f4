/** Authenticates bearer tokens: access keys, the local administrator's credential, tokens of the host cluster. */

import { RefusedCredentialError, type Credentials, type UserInfo } from '../../apiserver/user.ts';
import type { LocalAdministrator } from '../credentials/master-key.ts';
import { sleep, type Clock } from '../../base/clock.ts';
import { TokenBucket, type Rate } from '../../base/token-bucket.ts';
import { isSameDigest, type KeyDigests, type PresentedCredential } from '../credentials/access-key.ts';
import { keyState } from '../identity.ts';
import type { KeyActivity } from './key-activity.ts';
import type { IndexedCredential, IndexedKey, KeyIndex } from './key-index.ts';

/** Clients recognise the end of a login by this text. */
export const EXPIRED_MESSAGE = 'platform access key expired. Please login again';
const ROTATED_MESSAGE = 'platform access key was rotated. Use its new secret';
const DISABLED_MESSAGE = 'platform access key is disabled. Enable it or use another one';

const REFRESH_RATE: Rate = { burst: 20, perSecond: 10 };
const REFRESH_POLL_MS = 100;
const NOTES_AGE_MS = 1_000;

interface KeyAuthenticatorOptions {
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
  readonly #refreshes: TokenBucket;
  /** Compared for unknown ids, so that they take the same time. */
  readonly #dummyDigest = Buffer.alloc(32);
  readonly #stopping = new AbortController();
  /** A refresh that has not started: all requests until then share it. */
  #nextRefresh: Promise<void> | undefined;
  #refresh: Promise<void> = Promise.resolve();
  #notes: Promise<void> = Promise.resolve();
  #notesMs = Number.NEGATIVE_INFINITY;

  constructor(options: KeyAuthenticatorOptions) {
    this.#options = options;
    this.#refreshes = new TokenBucket(REFRESH_RATE, options.clock);
  }

  /**
   * Undefined: not a key, an unknown key, a wrong secret, or a key that is being deleted. Throws a `RefusedCredentialError` only for a
   * proven secret: expired, disabled or rotated. Rejects with `StoreError` if the index cannot be refreshed for an unknown key, or the
   * store has failed for ten minutes.
   */
  async authenticate(token: string): Promise<UserInfo | undefined> {
    const credential = this.#options.digests.presented(token);
    if (!credential) return undefined;
    await this.#options.index.confirmed();
    let found = this.#find(credential);
    if (!found) {
      // Another replica may just have created it. Also for a known id with a wrong secret: both must take the same time.
      await this.#refreshIndex();
      found = this.#find(credential);
    }
    if (!found || found.key.isDeleted) return undefined;
    if (this.#refusal(found) === EXPIRED_MESSAGE) await this.#readUseElsewhere(found.key);
    const refusal = this.#refusal(found);
    if (refusal !== undefined) throw new RefusedCredentialError(refusal);
    return found.credential.user;
  }

  stop(): void {
    this.#stopping.abort();
  }

  #find({ id, digest }: PresentedCredential): FoundKey | undefined {
    const candidates = this.#options.index.byCredential(id);
    if (candidates.length === 0) isSameDigest(this.#dummyDigest, digest);
    for (const key of candidates) {
      for (const credential of key.credentials) {
        if (credential.id === id && isSameDigest(credential.digest, digest)) return { key, credential };
      }
    }
    return undefined;
  }

  #refusal({ key, credential: { untilMs } }: FoundKey): string | undefined {
    const { index, clock } = this.#options;
    const nowMs = clock.now();
    if (untilMs !== undefined && untilMs <= nowMs) return ROTATED_MESSAGE;
    const state = keyState(key, index, nowMs);
    if (state === 'expired') return EXPIRED_MESSAGE;
    return state === 'disabled' ? DISABLED_MESSAGE : undefined;
  }

  /** A key with ttlAfterLastActivity may have been used at another replica. */
  async #readUseElsewhere(key: IndexedKey): Promise<void> {
    if (!key.isAfterActivity) return;
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#notesMs >= NOTES_AGE_MS) {
      this.#notesMs = nowMs;
      this.#notes = this.#options.activity.read();
    }
    await this.#notes;
  }

  #refreshIndex(): Promise<void> {
    this.#nextRefresh ??= this.#startRefresh();
    return this.#nextRefresh;
  }

  async #startRefresh(): Promise<void> {
    const { clock, index } = this.#options;
    const { signal } = this.#stopping;
    await this.#refresh.catch(() => undefined);
    while (this.#refreshes.take() > 0 && !signal.aborted) await sleep(clock, REFRESH_POLL_MS, signal);
    this.#nextRefresh = undefined;
    this.#refresh = index.catchUp();
    await this.#refresh;
  }
}

// All bearer tokens that the API accepts.

interface BearerParts {
  readonly keys: { authenticate(token: string): Promise<UserInfo | undefined> };
  readonly local: Pick<LocalAdministrator, 'authenticate'>;
  /** A token of ours is no credential for this API, even if the host cluster trusts its issuer. */
  readonly isDirectToken: (token: string) => boolean;
  /** Authenticates tokens of the host cluster; absent: they are not accepted. */
  readonly host: { authenticate(token: string, address: string): Promise<UserInfo | undefined> } | undefined;
}

/** Credentials that only this program issues are never sent to the host cluster, valid or not. */
const OURS = /^(pak|local)_/u;
const LOCAL = 'local_';
const BEARER = /^bearer +(\S+) *$/iu;

/** Returns undefined: unauthenticated. It rejects with a 401 `StatusError` for a proven key that is refused, with 429 when the host is asked too often. */
export function bearerAuthenticator({ keys, local, host, isDirectToken }: BearerParts) {
  return async ({ authorization, address }: Credentials): Promise<UserInfo | undefined> => {
    const token = BEARER.exec(authorization ?? '')?.[1];
    if (token === undefined) return undefined;
    const administrator = token.startsWith(LOCAL) ? local.authenticate(token) : undefined;
    const user = administrator ?? (await keys.authenticate(token));
    if (user !== undefined || OURS.test(token) || isDirectToken(token)) return user;
    return host?.authenticate(token, address);
  };
}
