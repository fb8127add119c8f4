/**
 * Rotation: a key gets a new secret, and the old one works until the overlap ends. The uid, the expiry and the scope of the key do not change,
 * and tokens that were issued with either secret stay valid. Without an overlap these tokens are revoked too, because then the old secret may
 * have been leaked.
 */

import { MANAGEMENT_GROUP, EXTRA } from '../identity.ts';
import type { ActionResult, Subresource } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable, Descriptions } from '../../apiserver/schema/object-schema.ts';
import { invalidValue, type FieldError, conflict, forbidden, invalid } from '../../apiserver/status.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import { metadataOf, objectField, text } from '../../apiserver/metadata.ts';
import type { Clock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import { generateAccessKey, type RandomBytes, type KeyDigests } from '../credentials/access-key.ts';
import { KEYS, ROTATE } from '../authorization/roles.ts';
import { credentialsOf, tokenGenerationOf, withCredentials, type ReplacedCredential } from './stored-key.ts';

const KIND = 'OwnedAccessKeyRotation';

export const ROTATION_TYPES = `
management.${KIND} = overlapSeconds int64
`;

export const ROTATION_DESCRIPTIONS: Descriptions = {
  [`management.${KIND}`]:
    'Rotates the secret of an access key. POST it to the subresource rotate of the key; the response contains the new secret in spec.key, once.',
  [`management.${KIND}.overlapSeconds`]:
    'Time in seconds during which the old secret stays valid, at most 604800 (a week). 0, the default, revokes it immediately, including the ' +
    'tokens that were issued with the key.',
};

export const OVERLAP_SECONDS_MAX = 7 * 86_400;
/** Older secrets of one key that are valid at the same time. */
export const REPLACED_SECRETS_MAX = 8;

export interface RotationOptions {
  readonly types: TypeTable;
  readonly digests: KeyDigests;
  readonly randomBytes: RandomBytes;
  readonly clock: Clock;
}

export function rotateSubresource(options: RotationOptions): Subresource {
  return {
    name: ROTATE,
    verbs: ['create'],
    merge: (previous) => previous,
    action: {
      kind: KIND,
      schema: options.types.get(`management.${KIND}`),
      perform: (stored, request, user) => {
        refuseOldSecret(stored, user);
        return rotate(options, stored, request);
      },
    },
  };
}

function rotate(options: RotationOptions, stored: JsonObject, request: JsonObject): ActionResult {
  const metadata = metadataOf(stored);
  const name = text(metadata, 'name');
  if (text(metadata, 'deletionTimestamp') !== '') {
    throw conflict({ group: MANAGEMENT_GROUP, resource: KEYS }, name, 'the access key is being deleted');
  }
  const overlapSeconds = Number(request['overlapSeconds'] ?? 0);
  const nowMs = options.clock.now();
  const { current, replaced } = credentialsOf(stored);
  const untilMs = nowMs + overlapSeconds * 1000;
  const older = replaced
    .filter((credential) => credential.untilMs > nowMs)
    .map((credential) => ({ ...credential, untilMs: Math.min(credential.untilMs, untilMs) }));
  const errors = overlapErrors(overlapSeconds, older);
  if (errors.length > 0) throw invalid({ group: MANAGEMENT_GROUP, resource: KIND }, name, errors);
  const key = generateAccessKey(options.randomBytes);
  const next = withCredentials(stored, {
    current: options.digests.stored(key),
    replaced: [...(overlapSeconds === 0 ? [] : older), { ...current, untilMs }],
  });
  return {
    stored: overlapSeconds === 0 ? { ...next, tokenGeneration: tokenGenerationOf(stored) + 1 } : next,
    shown: (object) => ({ ...object, spec: { ...objectField(object, 'spec'), key } }),
  };
}

const OLD_SECRET =
  'an old secret, which is valid only until its overlap ends, cannot rotate its key: use the current secret of the key, or another key of its user';

/** An old secret could otherwise replace itself by one that does not end. Throws 403. */
function refuseOldSecret(stored: JsonObject, { extra }: UserInfo): void {
  const metadata = metadataOf(stored);
  if (extra[EXTRA.keyUid]?.[0] !== text(metadata, 'uid')) return;
  const { current, replaced } = credentialsOf(stored);
  const [used] = extra[EXTRA.credentialId] ?? [];
  // Without the id of a secret, the user was authenticated before the first rotation of the key.
  const isCurrent = used === undefined ? replaced.length === 0 : used === current.id;
  if (!isCurrent)
    throw forbidden({ group: MANAGEMENT_GROUP, resource: KEYS }, text(metadata, 'name'), OLD_SECRET);
}

function overlapErrors(overlapSeconds: number, older: readonly ReplacedCredential[]): FieldError[] {
  const field = 'overlapSeconds';
  if (overlapSeconds < 0 || overlapSeconds > OVERLAP_SECONDS_MAX) {
    return [invalidValue(field, overlapSeconds, `must be from 0 to ${OVERLAP_SECONDS_MAX} (seconds)`)];
  }
  if (overlapSeconds === 0 || older.length < REPLACED_SECRETS_MAX) return [];
  const detail = `${older.length} older secrets of the key are still valid: wait until the overlap of one ends, or rotate with 0`;
  return [invalidValue(field, overlapSeconds, detail)];
}
