/** The signing keys that all replicas share: read from the store, and rotated by the first replica that finds them due. */

import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
} from 'jose';
import { InvariantError, TerminalError } from '../../base/errors.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { OutageLog } from '../../base/outage-log.ts';
import { StoreError, type Store, type StoredEntry } from '../../apiserver/storage/store.ts';
import type { Seal } from '../credentials/master-key.ts';
import { MANAGEMENT_GROUP } from '../identity.ts';
import { type JsonObject, numberField, objectField, text } from '../../base/json.ts';

export interface KeyRingOptions {
  readonly store: Store;
  readonly seal: Seal;
  readonly clock: Clock;
  readonly logger: Logger;
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
  readonly #outage: OutageLog;
  #keys: readonly SigningKey[] = [];
  #loadedAtMs = Number.NEGATIVE_INFINITY;
  #loading: Promise<void> | undefined;
  #timer: Timer | undefined;
  #isStopped = false;
  /** By kid. */
  readonly #private = new Map<string, CryptoKey>();
  readonly #public = new Map<string, CryptoKey>();

  constructor(options: KeyRingOptions) {
    this.#options = options;
    this.#outage = new OutageLog(options.logger, 'cannot reload the signing keys, using the loaded ones');
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

  async signer(): Promise<{ readonly kid: string; readonly key: CryptoKey }> {
    await this.#fresh(FRESH_MS);
    const current = this.#signing();
    return { kid: current.kid, key: await this.#privateKey(current) };
  }

  /** The public key with this id; undefined: unknown. */
  async verifier(kid: string): Promise<CryptoKey | undefined> {
    if (this.#find(kid) === undefined) await this.#fresh(UNKNOWN_KID_MS);
    const found = this.#find(kid);
    // Written by generateSigningKey.
    return found && cached(this.#public, kid, async () => importJWK(found.publicJwk as EcJwk, ALGORITHM));
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
      this.#outage.ended();
    } catch (error) {
      if (!(error instanceof StoreError) || age > STALE_MS_MAX) throw error;
      this.#outage.failed({ err: error });
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

async function cached(
  cache: Map<string, CryptoKey>,
  kid: string,
  open: () => Promise<CryptoKey>,
): Promise<CryptoKey> {
  const key = cache.get(kid) ?? (await open());
  cache.set(kid, key);
  return key;
}

// The schedule of signing keys; pure. Every key is published before it signs, so that verifiers with a cached key set know it by then, and
// stays published until the last token that it signed has expired:
//
//     key 1   signs ├──────────── ROTATION ────────────┤ verifies until its last token has expired
//     key 2                   published ├─ AHEAD ──────┤ signs …
//
// A server that was down at the time of the change keeps the old key until the new one has been published for PUBLISH_AHEAD_MIN.
//
// A key that begins more than AHEAD in the future was generated with a wrong clock, or this clock is wrong. It does not count for the
// schedule, so that it postpones no rotation, but is not removed: it may be the one with which other replicas sign.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Signing period of a key. */
export const ROTATION_MS = 30 * DAY_MS;
/** How long verifiers may cache the key set, as its response says. */
export const KEY_SET_AGE_MS = HOUR_MS;
/** Time between publication and first signature. */
const PUBLISH_AHEAD_MS = DAY_MS;
/** Its minimum after a downtime: the maximum age of a cached key set, doubled for clock skew and replicas that lag. */
const PUBLISH_AHEAD_MIN_MS = 2 * KEY_SET_AGE_MS;
/** Time that a key stays published after its tokens, for the same reason. */
export const KEEP_AFTER_MS = HOUR_MS;

interface RotationPlan {
  readonly generate: SigningKeySchedule | undefined;
  /** Keys whose recorded maximum token lifetime must be raised before they sign a longer token. */
  readonly extend: readonly SigningKey[];
  /** Keys without unexpired tokens. */
  readonly remove: readonly SigningKey[];
}

/** `keys` sorted by sequence. */
function planRotation(keys: readonly SigningKey[], nowMs: number, tokenSecondsMax: number): RotationPlan {
  const current = signingKeyAt(keys, nowMs);
  const signing = current === undefined ? 0 : keys.indexOf(current);
  return {
    generate: nextSchedule(keys, nowMs, tokenSecondsMax),
    extend: keys.filter((key, index) => index >= signing && key.tokenSecondsMax < tokenSecondsMax),
    remove: keys.filter((key, index) => {
      if (index >= signing) return false;
      return nowMs > signsUntilMs(key, keys.slice(index + 1)) + key.tokenSecondsMax * 1000 + KEEP_AFTER_MS;
    }),
  };
}

/** A later key that begins before this one comes from another clock, and says nothing about the end of this one. Infinity: unknown. */
function signsUntilMs({ signsFromMs }: SigningKey, later: readonly SigningKey[]): number {
  return Math.min(...later.map((key) => key.signsFromMs).filter((beginMs) => beginMs >= signsFromMs));
}

/** The newest key that may sign; the first one if none may. */
function signingKeyAt(keys: readonly SigningKey[], nowMs: number): SigningKey | undefined {
  return keys.findLast(({ signsFromMs }) => signsFromMs <= nowMs) ?? keys[0];
}

/** Whether the key counts for the schedule. The clocks of replicas may differ by an hour. */
function isInSchedule({ signsFromMs }: SigningKey, nowMs: number): boolean {
  return signsFromMs <= nowMs + PUBLISH_AHEAD_MS + HOUR_MS;
}

function nextSchedule(
  keys: readonly SigningKey[],
  nowMs: number,
  tokenSecondsMax: number,
): SigningKeySchedule | undefined {
  const last = keys.at(-1);
  // No verifier has cached a key set without the first key.
  if (last === undefined) return { sequence: 1, signsFromMs: nowMs, tokenSecondsMax };
  const newest = keys.findLast((key) => isInSchedule(key, nowMs));
  const dueMs = newest === undefined ? nowMs : newest.signsFromMs + ROTATION_MS;
  if (nowMs < dueMs - PUBLISH_AHEAD_MS) return undefined;
  const signsFromMs = Math.max(dueMs, nowMs + PUBLISH_AHEAD_MIN_MS);
  return { sequence: last.sequence + 1, signsFromMs, tokenSecondsMax };
}

// A signing key of tokens: generated, and stored with its private key sealed.

/** An algorithm that kube-apiserver verifies, with short signatures. */
export const ALGORITHM = 'ES256';

/** Resource of the signing keys in the store; it is not served. */
export const SIGNING_KEYS = `signingkeys.${MANAGEMENT_GROUP}`;

type EcJwk = JWK & { kty: 'EC' };

interface SigningKeySchedule {
  /** 1, 2, 3 …; part of the name in the store, so that only one replica creates the next key. */
  readonly sequence: number;
  /** Epoch milliseconds. */
  readonly signsFromMs: number;
  /** Maximum lifetime of the tokens that this key signed. */
  readonly tokenSecondsMax: number;
}

interface SigningKey extends SigningKeySchedule {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  /** As published. */
  readonly publicJwk: JsonObject;
  readonly entry: StoredEntry;
}

export function signingKeyName(sequence: number): string {
  return `key-${sequence}`;
}

async function generateSigningKey(schedule: SigningKeySchedule, seal: Seal): Promise<JsonObject> {
  const pair = await generateKeyPair(ALGORITHM, { extractable: true });
  const { kty, crv, x, y, d } = await exportJWK(pair.privateKey);
  const kid = await calculateJwkThumbprint({ kty, crv, x, y } as JWK); // an EC key has all four
  return {
    metadata: { name: signingKeyName(schedule.sequence) },
    spec: {
      sequence: schedule.sequence,
      kid,
      publicKey: { kty, crv, x, y, kid, alg: ALGORITHM, use: 'sig' } as JsonObject, // all members are strings
      signsFrom: new Date(schedule.signsFromMs).toISOString(),
      tokenSecondsMax: schedule.tokenSecondsMax,
      sealedPrivateKey: seal.seal(JSON.stringify({ kty, crv, x, y, d }), purposeOf(kid)),
    },
  };
}

export function readSigningKey(entry: StoredEntry): SigningKey {
  const spec = objectField(entry.value, 'spec');
  return {
    sequence: numberField(spec, 'sequence', NaN),
    kid: text(spec, 'kid'),
    publicJwk: objectField(spec, 'publicKey'),
    signsFromMs: Date.parse(text(spec, 'signsFrom')),
    tokenSecondsMax: numberField(spec, 'tokenSecondsMax', NaN),
    entry,
  };
}

function withTokenSecondsMax({ entry }: SigningKey, tokenSecondsMax: number): JsonObject {
  return { ...entry.value, spec: { ...objectField(entry.value, 'spec'), tokenSecondsMax } };
}

/** Throws a {@link TerminalError} if the key cannot be decrypted. */
async function openPrivateKey(key: SigningKey, seal: Seal): Promise<CryptoKey> {
  const sealed = text(objectField(key.entry.value, 'spec'), 'sealedPrivateKey');
  let plain: string;
  try {
    plain = seal.open(sealed, purposeOf(key.kid));
  } catch (cause) {
    throw new TerminalError(
      `the signing key ${signingKeyName(key.sequence)} in the store cannot be decrypted: it was changed, or sealed with another master key; ` +
        'restore the master key file of this store',
      { cause },
    );
  }
  return importJWK(JSON.parse(plain) as EcJwk, ALGORITHM); // written by generateSigningKey
}

function purposeOf(kid: string): string {
  return `signing-key:${kid}`;
}
