/** The resource definition of DirectClusterEndpointToken: created and returned, never stored. */

import { MANAGEMENT_GROUP, MANAGEMENT_VERSION } from '../api-group.ts';
import { randomUUID } from 'node:crypto';
import type { FieldError } from '../../apiserver/field-error.ts';
import { generatedName } from '../../apiserver/objects/object-metadata.ts';
import {
  defineResource,
  type Caller,
  type ResourceDefinition,
} from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/notation.ts';
import { failure, forbidden, invalid } from '../../apiserver/status.ts';
import { metadataOf, objectField, text, validateMetadata } from '../../apiserver/metadata.ts';
import { subdomainProblem } from '../../kube/names.ts';
import type { UserInfo } from '../../apiserver/request/user.ts';
import type { Clock } from '../../base/clock.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { StoreError } from '../../apiserver/storage/store.ts';
import { widerThan } from '../authorization/scope-contains.ts';
import { validateScope, scopeWarnings } from '../authorization/scope-validation.ts';
import { EXTRA, scopeOf } from '../identity.ts';
import type { KeyIndex, KeyRecord, Scope } from '../types.ts';
import { isUsable, TOKEN_BYTES_MAX, type TokenContent } from './token.ts';
import { checkTtl, grantTtl, type TokenTtls } from './token-ttl.ts';

const KIND = 'DirectClusterEndpointToken';
const PLURAL = 'directclusterendpointtokens';

export interface TokenKindOptions {
  readonly types: TypeTable;
  readonly index: KeyIndex;
  readonly clock: Clock;
  readonly random: Random;
  readonly ttls: TokenTtls;
  sign(content: TokenContent): Promise<string>;
  /** Called for each issued token; dry runs do not count. */
  issued(): void;
}

export function directClusterEndpointTokens(options: TokenKindOptions): ResourceDefinition {
  return defineResource({
    group: MANAGEMENT_GROUP,
    version: MANAGEMENT_VERSION,
    kind: KIND,
    plural: PLURAL,
    singular: 'directclusterendpointtoken',
    isNamespaced: false,
    verbs: ['create'],
    patchKinds: ['json', 'merge', 'apply'],
    schema: options.types.get('management.DirectClusterEndpointToken'),
    checkName: subdomainProblem,
    responseContainsSecret: true,
    respond: (object, caller) => respond(options, object, caller),
  });
}

async function respond(options: TokenKindOptions, object: JsonObject, caller: Caller): Promise<JsonObject> {
  const id = randomUUID();
  const nowMs = options.clock.now();
  const record = callingKey(options, caller.user);
  const metadata = tokenMetadata(metadataOf(object), id, { nowMs, random: options.random });
  const spec = objectField(object, 'spec');
  const name = text(metadata, 'name');
  const problems = [
    ...validateMetadata(metadata, METADATA_RULES),
    ...checkTtl(spec, options.ttls),
    ...checkScope(spec, caller),
  ];
  if (problems.length > 0) throw invalid({ group: MANAGEMENT_GROUP, resource: KIND }, name, problems);
  const scope = grantScope(spec, caller.user);
  const granted = grantTtl(spec, options.ttls, { nowMs, keyExpiresAtMs: options.index.expiresAtMs(record) });
  if (granted.warning !== '') caller.warn(granted.warning);
  const content = { id, record, scope, ...granted };
  const token = await signed(options, content);
  if (token.length > TOKEN_BYTES_MAX) {
    throw invalid({ group: MANAGEMENT_GROUP, resource: KIND }, name, [tooLarge(token.length, spec, content)]);
  }
  if (!caller.isDryRun) options.issued();
  const ttl = granted.expiresAt - granted.issuedAt;
  return {
    metadata,
    spec: { ttl, ...(scope === undefined ? {} : { scope: scope as JsonObject }) }, // decoded JSON
    status: caller.isDryRun ? {} : { token },
  };
}

const METADATA_RULES = {
  checkName: subdomainProblem,
  isNamespaced: false,
  needsQualifiedFinalizers: false,
};

/** Tokens belong to the key that creates them. */
function callingKey({ index, clock }: TokenKindOptions, { extra }: UserInfo): KeyRecord {
  const uid = extra[EXTRA.keyUid]?.[0];
  if (uid === undefined) {
    const why = 'a token belongs to the access key that creates it: send the request with an access key';
    throw forbidden({ group: MANAGEMENT_GROUP, resource: PLURAL }, '', why);
  }
  const record = index.byUid(uid);
  const isSame = record !== undefined && String(record.tokenGeneration) === extra[EXTRA.generation]?.[0];
  // The key changed during the request.
  if (!isSame || !isUsable(record, index, clock)) throw failure(401, 'Unauthorized', 'Unauthorized');
  return record;
}

function tokenMetadata(
  sent: JsonObject,
  id: string,
  { nowMs, random }: { readonly nowMs: number; readonly random: Random },
): JsonObject {
  const [name, prefix] = [text(sent, 'name'), text(sent, 'generateName')];
  const metadata: JsonObject = { name: name || (prefix === '' ? id : generatedName(prefix, random)) };
  if (prefix !== '') metadata['generateName'] = prefix;
  metadata['uid'] = id;
  metadata['creationTimestamp'] = `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
  for (const field of ['labels', 'annotations']) {
    const value = sent[field];
    if (value !== undefined) metadata[field] = value;
  }
  return metadata;
}

function checkScope({ scope }: JsonObject, caller: Caller): readonly FieldError[] {
  if (!isJsonObject(scope)) return [];
  for (const warning of scopeWarnings(scope, 'spec.scope')) caller.warn(warning);
  return validateScope(scope, 'spec.scope');
}

/** The requested scope, which must be within that of the caller; else the caller's. */
function grantScope(spec: JsonObject, user: UserInfo): Scope | undefined {
  const own = scopeOf(user);
  const asked = isJsonObject(spec['scope']) ? (spec['scope'] as Scope) : undefined; // validated
  if (asked === undefined || own === undefined) return asked ?? own;
  const wider = widerThan(asked, own);
  if (wider === undefined) return asked;
  const where = wider.path === '' ? 'spec.scope' : `spec.scope.${wider.path}`;
  const why = `${where} ${wider.text}: a token has no wider scope than the access key that creates it`;
  throw forbidden({ group: MANAGEMENT_GROUP, resource: PLURAL }, '', why);
}

async function signed(options: TokenKindOptions, content: TokenContent): Promise<string> {
  try {
    return await options.sign(content);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw failure(503, 'ServiceUnavailable', 'the signing keys cannot be read: retry', {
      retryAfterSeconds: 1,
    });
  }
}

/** Names the larger part of the token: its scope, which it contains twice, or the groups of the key. */
function tooLarge(bytes: number, spec: JsonObject, { scope, record }: TokenContent): FieldError {
  const isFullOfGroups = sizeOf(record.user.groups) > 2 * sizeOf(scope ?? null);
  const whose = isJsonObject(spec['scope']) ? 'this scope' : 'the scope of the access key';
  const [field, what, advice] = isFullOfGroups
    ? ['spec', 'the groups of the access key', 'use a key with fewer groups']
    : ['spec.scope', whose, 'name fewer entries, whole projects, or * for all of a kind'];
  const message = `Too many: with ${what} the token would have ${bytes} bytes, of which ${TOKEN_BYTES_MAX} are allowed; ${advice}`;
  return { reason: 'FieldValueTooMany', field, message };
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value).length;
}
