/** A signing key of tokens: generated, and stored with its private key sealed. */

import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type CryptoKey,
  type JWK,
} from 'jose';
import { MANAGEMENT_GROUP } from '../identity.ts';
import { objectField, text } from '../../apiserver/metadata.ts';
import { TerminalError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { StoredEntry } from '../../apiserver/storage/store.ts';
import type { Seal } from '../credentials/master-key.ts';

/** An algorithm that kube-apiserver verifies, with short signatures. */
export const ALGORITHM = 'ES256';

/** Resource of the signing keys in the store; it is not served. */
export const SIGNING_KEYS = `signingkeys.${MANAGEMENT_GROUP}`;

type EcJwk = JWK & { kty: 'EC' };

export interface SigningKey {
  /** 1, 2, 3 …; part of the name in the store, so that only one replica creates the next key. */
  readonly sequence: number;
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  /** As published. */
  readonly publicJwk: JsonObject;
  /** Epoch milliseconds. */
  readonly signsFromMs: number;
  /** Maximum lifetime of the tokens that this key signed. */
  readonly tokenSecondsMax: number;
  /** The stored entry. */
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

/** A new key pair in its stored form. */
export async function generateSigningKey(schedule: SigningKeySchedule, seal: Seal): Promise<JsonObject> {
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
    sequence: Number(spec['sequence']),
    kid: text(spec, 'kid'),
    publicJwk: objectField(spec, 'publicKey'),
    signsFromMs: Date.parse(text(spec, 'signsFrom')),
    tokenSecondsMax: Number(spec['tokenSecondsMax']),
    entry,
  };
}

/** The stored form with another maximum token lifetime. */
export function withTokenSecondsMax({ entry }: SigningKey, tokenSecondsMax: number): JsonObject {
  return { ...entry.value, spec: { ...objectField(entry.value, 'spec'), tokenSecondsMax } };
}

/** Throws a {@link TerminalError} if the key cannot be decrypted. */
export async function openPrivateKey(key: SigningKey, seal: Seal): Promise<CryptoKey> {
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

export function openPublicKey(key: SigningKey): Promise<CryptoKey> {
  return importJWK(key.publicJwk as EcJwk, ALGORITHM); // written by generateSigningKey
}

function purposeOf(kid: string): string {
  return `signing-key:${kid}`;
}
