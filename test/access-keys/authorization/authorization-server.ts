/** An API server with keys, reviews and the authorization rules. Callers are those of the test, or use a key. */

import { META_TYPES, TypeTable } from '../../../src/apiserver/schema/object-schema.ts';
import { REVIEW_TYPES } from '../../../src/apiserver/access-review.ts';
import {
  defineResource,
  DefinitionTable,
  type ResourceDefinition,
} from '../../../src/apiserver/objects/resource-definition.ts';
import { startServer } from '../../../src/apiserver/http/api-server.ts';
import type { UserInfo } from '../../../src/apiserver/user.ts';
import type { ClusterClient } from '../../../src/kube/types.ts';
import { type JsonObject, objectField } from '../../../src/base/json.ts';
import { ManagementAuthorizer } from '../../../src/access-keys/authorization/authorizer.ts';
import { DelegatedAuth, hostReviews } from '../../../src/access-keys/authorization/delegated-auth.ts';
import { reviewKinds } from '../../../src/access-keys/authorization/reviews.ts';
import { WriteAuthorizer } from '../../../src/access-keys/authorization/write-authorizer.ts';
import { KeyActivity } from '../../../src/access-keys/keys/key-activity.ts';
import { KeyIndex as StoredKeyIndex } from '../../../src/access-keys/keys/key-index.ts';
import { splitPath } from '../../../src/access-keys/authorization/grants.ts';
import {
  ADMINISTRATORS,
  AUTH_DELEGATORS,
  AUTHENTICATED,
  EXTRA,
  isDelegated,
  type KeyIndex,
  type KeyRecord,
  type Scope,
} from '../../../src/access-keys/identity.ts';
import type { Keys } from '../../../src/access-keys/keys/keys.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import { RawClient, type RawAnswer } from '../../contract/raw-client.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { keyOf, KEYS_PATH, makeKeys, type KeyServerOptions } from '../keys/key-server.ts';

/** The key of a cluster that sends reviews. */
const DELEGATOR = 'delegator';

/** A caller without a key. */
export function caller(name: string, groups: readonly string[] = [], scope?: Scope): UserInfo {
  const extra = scope === undefined ? {} : { [EXTRA.scope]: [JSON.stringify(scope)] };
  return { name, uid: '', groups: [...groups, AUTHENTICATED], extra };
}

/** An index that holds these keys. */
export function indexOf(...records: (KeyRecord & { endMs?: number })[]): KeyIndex {
  return {
    byUid: (uid) => records.find((record) => record.uid === uid),
    expiresAtMs: (record) => records.find((known) => known === record)?.endMs,
    confirmed: () => undefined,
    catchUp: () => Promise.resolve(),
  };
}

export function record(overrides: Partial<KeyRecord> & { endMs?: number; scope?: Scope } = {}): KeyRecord {
  const { uid = 'u1', name = 'k1', tokenGeneration = 1, scope, ...rest } = overrides;
  const plain = caller('alice', [], scope);
  const extra = {
    ...plain.extra,
    [EXTRA.keyUid]: [uid],
    [EXTRA.keyName]: [name],
    [EXTRA.generation]: [String(tokenGeneration)],
  };
  const user = { ...plain, extra };
  return {
    user,
    ttlMs: 0,
    isDisabled: false,
    isDeleted: false,
    ...rest,
    uid,
    name,
    tokenGeneration,
  };
}

export interface AuthorizationServer extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly keys: Keys;
  readonly authorizer: ManagementAuthorizer;
  readonly reviews: readonly ResourceDefinition[];
  /** Bearer token → caller. */
  readonly callers: Map<string, UserInfo>;
  /** Tokens for direct cluster endpoints → whose they are. */
  readonly tokens: Map<string, UserInfo>;
  /** Whose keys were used, in order, but for that of the delegator. */
  readonly used: string[];
  /** A PATCH is a merge patch; with an apiVersion in its body, server-side apply. */
  send(as: string, method: string, path: string, body?: JsonObject): Promise<RawAnswer>;
  /** The open watch of this caller. */
  watch(as: string, path: string): ReturnType<RawClient['watch']>;
  /** POSTs a key; the rest of a valid `spec` is added. */
  create(as: string, name: string, spec: JsonObject): Promise<RawAnswer>;
  /** POSTs a review; its status. */
  review(as: string, path: string, spec: JsonObject): Promise<JsonObject>;
}

export interface AuthorizationServerOptions {
  readonly host?: Pick<ClusterClient, 'request'>;
}

export async function startAuthorizationServer(
  options: AuthorizationServerOptions = {},
): Promise<AuthorizationServer> {
  const clock = new FakeClock();
  const store = new MemoryStore();
  const types = new TypeTable([META_TYPES, REVIEW_TYPES]);
  const callers = new Map([
    ['admin', caller('root', [ADMINISTRATORS])],
    ['alice', caller('alice', ['platform:team:blue'])],
    ['bob', caller('bob')],
  ]);
  const tokens = new Map<string, UserInfo>();
  const used: string[] = [];
  const logger = silentLogger;
  const activity = new KeyActivity({ store, clock, logger });
  const index = new StoredKeyIndex(store, activity);
  const host = options.host && new DelegatedAuth(hostReviews(options.host), clock);
  const recordUse = (key: KeyRecord): void => {
    if (key.name !== DELEGATOR) used.push(key.user.name);
    activity.recordUse(key);
  };
  const authorizer = new ManagementAuthorizer({ index, activity: { recordUse }, clock, host });
  const writes = new WriteAuthorizer(index, clock, host);
  const authorizeWrite: KeyServerOptions['authorizeWrite'] = (write) => writes.authorize(write);
  const keys = makeKeys(store, { clock, index, activity, authorizer, authorizeWrite });
  const reviews = reviewKinds(types, authorizer, {
    authenticateKey: (token) => keys.authenticator.authenticate(token),
    verifyToken: (token) => Promise.resolve(tokens.get(token)),
  });
  await keys.start();
  const server = await startServer({
    table: new DefinitionTable(
      [keys.definition, keys.events, tokenKind(types), ...reviews],
      [],
      [keys.coreEvents],
    ),
    logger: silentLogger,
    authorizer,
    authenticate: async ({ authorization }) => {
      const token = authorization?.replace('Bearer ', '') ?? '';
      const known = callers.get(token) ?? (await keys.authenticator.authenticate(token));
      return known ?? host?.authenticate(token);
    },
    splitPath,
    version: { major: '1', minor: '37', gitVersion: 'v1.37.0' },
    registry: keys.registry,
    rechecksWatchesOf: isDelegated,
  });
  const client = new RawClient({ url: `http://${server.address}` });
  const send: AuthorizationServer['send'] = (as, method, path, body) =>
    client.send({
      method,
      path,
      headers: { authorization: `Bearer ${as}`, 'content-type': contentType(method, body) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const create: AuthorizationServer['create'] = (as, name, spec) =>
    send(as, 'POST', KEYS_PATH, {
      metadata: { name },
      spec: { displayName: 'D', ttl: 0, type: 'User', ...spec },
    });
  // Below targets rights are only those of keys.
  const key = await create('admin', DELEGATOR, { user: 'cluster-a', groups: [AUTH_DELEGATORS] });
  const delegator = await keys.authenticator.authenticate(keyOf(key.json ?? {}));
  if (delegator) callers.set('delegator', delegator);
  return {
    clock,
    keys,
    authorizer,
    reviews,
    callers,
    tokens,
    used,
    send,
    watch: (as, path) => client.watch(path, { authorization: `Bearer ${as}` }),
    create,
    review: async (as, path, spec) => {
      const answer = await send(as, 'POST', path, { spec });
      if (answer.status !== 201) throw new Error(`not answered: ${answer.text}`);
      return part(answer, 'status');
    },
    [Symbol.asyncDispose]: async () => {
      await client[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await keys.stop();
      await store[Symbol.asyncDispose]();
    },
  };
}

function contentType(method: string, body: JsonObject | undefined): string {
  if (method !== 'PATCH') return 'application/json';
  return body && 'apiVersion' in body ? 'application/apply-patch+yaml' : 'application/merge-patch+json';
}

/** A part of the answer's object. */
export function part(answer: RawAnswer, field: string): JsonObject {
  return objectField(answer.json ?? {}, field);
}

/** Stands in for the token kind. */
function tokenKind(types: TypeTable): ReturnType<typeof defineResource> {
  return defineResource({
    group: 'management.platform.sh',
    version: 'v1',
    kind: 'DirectClusterEndpointToken',
    plural: 'directclusterendpointtokens',
    singular: 'directclusterendpointtoken',
    isNamespaced: false,
    verbs: ['create'],
    schema: types.get('authentication.SelfSubjectReview'),
    checkName: () => undefined,
    respond: (object) => object,
  });
}
