/** A key that signs tokens: made, stored with its private half sealed, and read again. */

import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type CryptoKey,
  type JWK,
} from 'jose';
import { objectField, text } from '../../apiserver/validation/metadata.ts';
import { TerminalError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { StoredEntry } from '../../apiserver/storage/store.ts';
import type { Seal } from '../types.ts';

/** What a stock kube-apiserver verifies, small enough for a header. */
export const ALGORITHM = 'ES256';

/** Where signing keys are stored: no resource that is served. */
export const SIGNING_KEYS = 'signingkeys.management.platform.sh';

type EcJwk = JWK & { kty: 'EC' };

export interface SigningKey {
  /** 1, 2, 3 …: the name in the store, so that of several replicas one makes the next key. */
  readonly sequence: number;
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  /** As verifiers get it. */
  readonly publicJwk: JsonObject;
  /** Epoch milliseconds; until the next key takes over. */
  readonly signsFromMs: number;
  /** No token that this key signed lives longer. */
  readonly tokenSecondsMax: number;
  /** As it is stored. */
  readonly entry: StoredEntry;
}

export interface SigningKeySchedule {
  readonly sequence: number;
  readonly signsFromMs: number;
  readonly tokenSecondsMax: number;
}

export function signingKeyName(sequence: number): string {
  return `key-${sequence}`;
}

/** A new key pair as it is stored. */
export async function generateSigningKey(schedule: SigningKeySchedule, seal: Seal): Promise<JsonObject> {
  const pair = await generateKeyPair(ALGORITHM, { extractable: true });
  const { kty, crv, x, y, d } = await exportJWK(pair.privateKey);
  const kid = await calculateJwkThumbprint({ kty, crv, x, y } as JWK); // of an EC key all four are there
  return {
    metadata: { name: signingKeyName(schedule.sequence) },
    spec: {
      sequence: schedule.sequence,
      kid,
      publicKey: { kty, crv, x, y, kid, alg: ALGORITHM, use: 'sig' } as JsonObject, // texts, all of them
      signsFrom: new Date(schedule.signsFromMs).toISOString(),
      tokenSecondsMax: schedule.tokenSecondsMax,
      sealedPrivateKey: seal.seal(JSON.stringify({ kty, crv, x, y, d }), purposeOf(kid)),
    },
  };
}

export function readSigningKey(entry: StoredEntry): SigningKey {
  const spec = objectField(entry.value, 'spec');
  return {
    sequence: Number(spec['sequence']),
    kid: text(spec, 'kid'),
    publicJwk: objectField(spec, 'publicKey'),
    signsFromMs: Date.parse(text(spec, 'signsFrom')),
    tokenSecondsMax: Number(spec['tokenSecondsMax']),
    entry,
  };
}

/** The stored form for tokens that live longer than those of before. */
export function withTokenSecondsMax({ entry }: SigningKey, tokenSecondsMax: number): JsonObject {
  return { ...entry.value, spec: { ...objectField(entry.value, 'spec'), tokenSecondsMax } };
}

/** Throws a {@link TerminalError} when the seal is not the one that the key was stored with. */
export async function openPrivateKey(key: SigningKey, seal: Seal): Promise<CryptoKey> {
  const sealed = text(objectField(key.entry.value, 'spec'), 'sealedPrivateKey');
  let plain: string;
  try {
    plain = seal.open(sealed, purposeOf(key.kid));
  } catch (cause) {
    throw new TerminalError(
      `the signing key ${signingKeyName(key.sequence)} in the store cannot be opened: it was changed, or sealed under another master key; ` +
        'put back the master key file that belongs to this store',
      { cause },
    );
  }
  return importJWK(JSON.parse(plain) as EcJwk, ALGORITHM); // our own text
}

export function openPublicKey(key: SigningKey): Promise<CryptoKey> {
  return importJWK(key.publicJwk as unknown as EcJwk, ALGORITHM); // our own JWK
}

function purposeOf(kid: string): string {
  return `signing-key:${kid}`;
}
