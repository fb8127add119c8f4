/** The resource definition of DirectClusterEndpointToken: created and returned, never stored. */

import { metadataOf, timeText } from '../../kube/object.ts';
import { randomUUID } from 'node:crypto';
import {
  MANAGEMENT_GROUP,
  MANAGEMENT_VERSION,
  EXTRA,
  keyState,
  scopeOf,
  type KeyIndex,
  type KeyRecord,
  type Scope,
} from '../identity.ts';
import { type FieldError, invalidValue, forbidden, invalid } from '../../apiserver/status.ts';
import { generatedName } from '../../apiserver/objects/object-writer.ts';
import { defineResource, type Caller } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { failure } from '../../kube/status-error.ts';
import { validateMetadata } from '../../apiserver/metadata.ts';
import { subdomainProblem } from '../../kube/names.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import type { Clock } from '../../base/clock.ts';
import { isJsonObject, type JsonObject, numberField, objectField, text } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { StoreError, type Store } from '../../apiserver/storage/store.ts';
import { audiencesOf } from '../authorization/audiences.ts';
import { widerThan } from '../authorization/scope-grants.ts';
import { validateScope, scopeWarnings } from '../authorization/scope-validation.ts';
import { TOKEN_BYTES_MAX, type TokenContent, signToken, verifyToken } from './token.ts';
import { type ApiResponse, jsonResponse } from '../../apiserver/request/api-response.ts';
import type { Logger } from '../../base/logger.ts';
import type { Seal } from '../credentials/master-key.ts';
import { KeyRing, KEY_SET_AGE_MS, ALGORITHM } from './key-ring.ts';

const KIND = 'DirectClusterEndpointToken';
const PLURAL = 'directclusterendpointtokens';

const METADATA_RULES = {
  checkName: subdomainProblem,
  isNamespaced: false,
  needsQualifiedFinalizers: false,
};

/** Tokens belong to the key that creates them. */
function callingKey({ index, clock }: TokensOptions, { extra }: UserInfo): KeyRecord {
  const uid = extra[EXTRA.keyUid]?.[0];
  if (uid === undefined) {
    const why = 'a token belongs to the access key that creates it: send the request with an access key';
    throw forbidden({ group: MANAGEMENT_GROUP, resource: PLURAL }, '', why);
  }
  const record = index.byUid(uid);
  const isSame = record !== undefined && String(record.tokenGeneration) === extra[EXTRA.generation]?.[0];
  if (isSame && keyState(record, index, clock.now()) === 'active') return record;
  // The key changed during the request.
  throw failure(401, 'Unauthorized', 'Unauthorized');
}

function tokenMetadata(sent: JsonObject, id: string, nowMs: number, random: Random): JsonObject {
  const [name, prefix] = [text(sent, 'name'), text(sent, 'generateName')];
  const metadata: JsonObject = { name: name || (prefix === '' ? id : generatedName(prefix, random)) };
  if (prefix !== '') metadata['generateName'] = prefix;
  metadata['uid'] = id;
  metadata['creationTimestamp'] = timeText(nowMs);
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

function unlessUnavailable(error: unknown): never {
  if (!(error instanceof StoreError)) throw error;
  throw failure(503, 'ServiceUnavailable', 'the signing keys cannot be read: retry', {
    retryAfterSeconds: 1,
  });
}

/** Names the larger part of the token: its scope, which it contains twice and as audiences, or the groups of the key. */
function tooLarge(bytes: number, spec: JsonObject, { scope, record }: TokenContent): FieldError {
  const scopeSize = 2 * sizeOf(scope ?? null) + sizeOf(audiencesOf(scope));
  const isFullOfGroups = sizeOf(record.user.groups) > scopeSize;
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

// The lifetime of a token: as requested or the default, at most the maximum, never beyond the end of its key; pure.

interface TokenTtls {
  readonly default: number;
  readonly max: number;
}

interface GrantedTtl {
  /** Epoch seconds. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** Empty if the client gets the lifetime that it requested. */
  readonly warning: string;
}

function checkTtl(spec: JsonObject, { max }: TokenTtls): FieldError[] {
  const asked = numberField(spec, 'ttl');
  if (asked < 0) return [invalidValue('spec.ttl', spec['ttl'], 'must be greater than or equal to 0')];
  if (asked <= max) return [];
  const detail = `must not be more than ${max} seconds, the maximum of this server`;
  return [invalidValue('spec.ttl', spec['ttl'], detail)];
}

/** Throws 401 if the key expires within this second. */
function grantTtl(
  spec: JsonObject,
  ttls: TokenTtls,
  nowMs: number,
  keyExpiresAtMs: number | undefined,
): GrantedTtl {
  const issuedAt = Math.floor(nowMs / 1000);
  const asked = numberField(spec, 'ttl');
  const wanted = issuedAt + (asked === 0 ? Math.min(ttls.default, ttls.max) : asked);
  const keyEnds = keyExpiresAtMs === undefined ? wanted : Math.floor(keyExpiresAtMs / 1000);
  const expiresAt = Math.min(wanted, keyEnds);
  if (expiresAt <= issuedAt) throw failure(401, 'Unauthorized', 'Unauthorized');
  const isCut = asked !== 0 && expiresAt < wanted;
  const warning = isCut
    ? `spec.ttl: reduced from ${asked} to ${expiresAt - issuedAt} seconds: the token expires with the access key that creates it`
    : '';
  return { issuedAt, expiresAt, warning };
}

// The fields of a DirectClusterEndpointToken. Notation: `apiserver/schema/object-schema.ts`; the scope's are those of a key.

/** The scope is a pointer: a scope without entries allows nothing, an absent one means that of the key. */
export const TOKEN_TYPES = `
management.DirectClusterEndpointToken = metadata! meta.ObjectMeta; spec! management.DirectClusterEndpointTokenSpec; status! management.DirectClusterEndpointTokenStatus
management.DirectClusterEndpointTokenSpec = ttl int64; scope *management.AccessKeyScope
management.DirectClusterEndpointTokenStatus = token string
management.DirectClusterEndpointToken: A time-limited token for direct cluster endpoints: connected clusters that are accessed without the central instance. It is returned once and not stored, so it cannot be read, listed or deleted. It expires after its ttl or with the access key that created it.
management.DirectClusterEndpointToken.metadata: Standard object metadata. Labels and annotations are returned as they were sent. The default of name is the id of the token.
management.DirectClusterEndpointToken.spec: Requested lifetime and scope. May be empty.
management.DirectClusterEndpointToken.status: The issued token; empty for a dry run.
management.DirectClusterEndpointTokenSpec: Requested lifetime and scope. The response contains the granted ones.
management.DirectClusterEndpointTokenSpec.ttl: Lifetime of the token in seconds. 0 means the default of the server. It is reduced, with a warning, to the remaining lifetime of the access key that creates it.
management.DirectClusterEndpointTokenSpec.scope: Scope of the token, which must be within that of the access key. Without it the token has the scope of the access key.
management.DirectClusterEndpointTokenStatus: The issued token.
management.DirectClusterEndpointTokenStatus.token: The token, a JWT that the cluster accepts as a bearer token. It is a secret and returned only once.
`;

// Direct cluster endpoint tokens: the resource, the signing keys, and the documents for verifiers.

export interface TokensOptions {
  readonly store: Store;
  readonly seal: Seal;
  readonly index: KeyIndex;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Holds `META_TYPES`, `SCOPE_TYPES` and `TOKEN_TYPES`. */
  readonly types: TypeTable;
  /** https URL, the `iss` claim as it is. */
  readonly issuer: string;
  readonly ttls: TokenTtls;
  /** Called for each issued token; dry runs do not count. */
  issued(): void;
}

export type Tokens = ReturnType<typeof composeTokens>;

export function composeTokens(options: TokensOptions) {
  const { ttls, index, clock, issuer } = options;
  const ring = new KeyRing({ ...options, tokenSecondsMax: Math.max(ttls.default, ttls.max) });
  return {
    definition: defineResource({
      group: MANAGEMENT_GROUP,
      version: MANAGEMENT_VERSION,
      kind: KIND,
      plural: PLURAL,
      singular: 'directclusterendpointtoken',
      isNamespaced: false,
      verbs: ['create'],
      schema: options.types.get('management.DirectClusterEndpointToken'),
      checkName: subdomainProblem,
      responseContainsSecret: true,
      respond: (object, caller) =>
        issue(options, object, caller, (content) => signToken(ring, issuer, content)),
    }),
    /** For `startServer`, by path. */
    publicDocuments: tokenDocuments(ring, issuer),
    /** The user of a token, for a TokenReview; undefined: invalid. On this API itself a token is not accepted. */
    verify: (token: string): Promise<UserInfo | undefined> => verifyToken(ring, issuer, index, clock, token),
    /** Generates the first signing key. Throws a `TerminalError` if the keys in the store cannot be decrypted. */
    start: (): Promise<void> => ring.start(),
    stop: (): Promise<void> => ring.stop(),
  };
}

async function issue(
  options: TokensOptions,
  object: JsonObject,
  caller: Caller,
  sign: (content: TokenContent) => Promise<string>,
): Promise<JsonObject> {
  const id = randomUUID();
  const nowMs = options.clock.now();
  const record = callingKey(options, caller.user);
  const metadata = tokenMetadata(metadataOf(object), id, nowMs, options.random);
  const spec = objectField(object, 'spec');
  const refuse = (problems: readonly FieldError[]): void => {
    if (problems.length === 0) return;
    throw invalid({ group: MANAGEMENT_GROUP, resource: KIND }, text(metadata, 'name'), problems);
  };
  refuse([
    ...validateMetadata(metadata, METADATA_RULES),
    ...checkTtl(spec, options.ttls),
    ...checkScope(spec, caller),
  ]);
  const scope = grantScope(spec, caller.user);
  const granted = grantTtl(spec, options.ttls, nowMs, options.index.expiresAtMs(record));
  if (granted.warning !== '') caller.warn(granted.warning);
  const content = { id, record, scope, ...granted };
  const token = await sign(content).catch(unlessUnavailable);
  if (token.length > TOKEN_BYTES_MAX) refuse([tooLarge(token.length, spec, content)]);
  if (!caller.isDryRun) {
    options.issued();
    // Other clients get no warning for what they have asked for.
    if (caller.manager.startsWith('kubectl')) caller.warn(SHOWN_ONCE);
  }
  const ttl = granted.expiresAt - granted.issuedAt;
  return {
    metadata,
    spec: { ttl, ...(scope === undefined ? {} : { scope: scope as JsonObject }) }, // decoded JSON
    status: caller.isDryRun ? {} : { token },
  };
}

const SHOWN_ONCE = "the token is only in this response: kubectl prints it with -o jsonpath='{.status.token}'";

// The documents for verifiers of tokens: OpenID Connect Discovery and the key set.

const DISCOVERY_PATH = '/.well-known/openid-configuration';
export const KEY_SET_PATH = '/openid/v1/jwks';

const CACHE_CONTROL = `public, max-age=${KEY_SET_AGE_MS / 1000}`;

/** By path. If the issuer has a path, they are served below it too, because verifiers append to the issuer. */
function tokenDocuments(ring: KeyRing, issuer: string): ReadonlyMap<string, () => Promise<ApiResponse>> {
  const discovery = (): Promise<ApiResponse> => Promise.resolve(cachedAnswer(discoveryDocument(issuer)));
  const keySet = async (): Promise<ApiResponse> => {
    const keys = (await ring.published()).map(({ publicJwk }) => publicJwk);
    const answer = cachedAnswer({ keys });
    return { ...answer, headers: { ...answer.headers, 'content-type': 'application/jwk-set+json' } };
  };
  const documents = new Map<string, () => Promise<ApiResponse>>();
  for (const base of new Set(['', basePath(issuer)])) {
    documents.set(base + DISCOVERY_PATH, discovery);
    documents.set(base + KEY_SET_PATH, keySet);
  }
  return documents;
}

function discoveryDocument(issuer: string): JsonObject {
  return {
    issuer,
    // As verifiers append the path of this document.
    jwks_uri: issuer.replace(/\/$/, '') + KEY_SET_PATH,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [ALGORITHM],
  };
}

function cachedAnswer(body: JsonObject): ApiResponse {
  const answer = jsonResponse(200, body);
  return { ...answer, headers: { ...answer.headers, 'cache-control': CACHE_CONTROL } };
}

function basePath(issuer: string): string {
  return new URL(issuer).pathname.replace(/\/+$/, '');
}
