/** An API server with keys that allows every request unless the test passes an authorizer. */

import { randomBytes } from 'node:crypto';
import {
  allowEverything,
  type Authorizer,
  type AuditEvent,
} from '../../../src/apiserver/request/request-info.ts';
import type { AdmissionRequest } from '../../../src/apiserver/objects/object-writer.ts';
import { EVENT_TYPES } from '../../../src/apiserver/event-kinds.ts';
import { META_TYPES, TypeTable } from '../../../src/apiserver/schema/object-schema.ts';
import { DefinitionTable } from '../../../src/apiserver/objects/resource-definition.ts';
import { startServer, type RunningServer } from '../../../src/apiserver/http/api-server.ts';
import { userNamed, type UserInfo } from '../../../src/apiserver/user.ts';
import { systemClock, type Clock } from '../../../src/base/clock.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { MasterKey } from '../../../src/access-keys/credentials/master-key.ts';
import { EXTRA } from '../../../src/access-keys/identity.ts';
import { composeKeys, type Keys } from '../../../src/access-keys/keys/keys.ts';
import { KeyActivity } from '../../../src/access-keys/keys/key-activity.ts';
import { KeyIndex } from '../../../src/access-keys/keys/key-index.ts';
import { KEY_TYPES } from '../../../src/access-keys/keys/key-kind.ts';
import { SCOPE_TYPES } from '../../../src/access-keys/authorization/scope-validation.ts';
import { silentLogger, type Logger } from '../../../src/base/logger.ts';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import type { Store } from '../../../src/apiserver/storage/store.ts';
import { RawClient, type RawAnswer } from '../../contract/raw-client.ts';

export const KEYS_PATH = '/apis/management.platform.sh/v1/ownedaccesskeys';
export const MASTER_BYTES = Buffer.alloc(32, 7);

export interface KeyServerOptions {
  store?: Store;
  clock?: Clock;
  maxTtlSeconds?: number;
  authorizer?: Authorizer;
  authorizeWrite?: (write: AdmissionRequest) => Promise<void>;
  masterKey?: MasterKey;
  audit?: (event: AuditEvent) => void;
  /** What an authorizer needs, too. Default: new ones over the store. */
  index?: KeyIndex;
  activity?: KeyActivity;
  /** Of the keys. Default: silent. */
  readonly logger?: Logger;
}

export interface KeyServer extends AsyncDisposable {
  readonly keys: Keys;
  readonly store: Store;
  readonly client: RawClient;
  readonly server: RunningServer;
  /** POST; the answer must be a 201. */
  create(name: string, spec?: JsonObject, metadata?: JsonObject): Promise<JsonObject>;
  send(method: string, path: string, body?: JsonValue, headers?: Record<string, string>): Promise<RawAnswer>;
}

function keyTypes(): TypeTable {
  return new TypeTable([META_TYPES, EVENT_TYPES, SCOPE_TYPES, KEY_TYPES]);
}

export function makeKeys(store: Store, options: KeyServerOptions = {}): Keys {
  const { clock = systemClock, maxTtlSeconds = 0, authorizer = allowEverything } = options;
  const { logger = silentLogger } = options;
  const activity = options.activity ?? new KeyActivity({ store, clock, logger });
  return composeKeys({
    store,
    clock,
    random: systemRandom,
    randomBytes,
    logger,
    masterKey: options.masterKey ?? new MasterKey(MASTER_BYTES, randomBytes),
    types: keyTypes(),
    maxTtlSeconds,
    audit: options.audit ?? (() => undefined),
    index: options.index ?? new KeyIndex(store, activity),
    activity,
    authorizer,
    writes: { authorize: options.authorizeWrite ?? (() => Promise.resolve()) },
  });
}

/** The bearer token of a caller is a user name, or a key. */
export async function startKeyServer(options: KeyServerOptions = {}): Promise<KeyServer> {
  const store = options.store ?? new MemoryStore();
  const keys = makeKeys(store, options);
  await keys.start();
  const server = await startServer({
    table: new DefinitionTable([keys.definition, keys.events], [], [keys.coreEvents]),
    logger: silentLogger,
    authorizer: options.authorizer ?? allowEverything,
    authenticate: async ({ authorization }): Promise<UserInfo | undefined> => {
      const token = authorization?.replace('Bearer ', '') ?? 'nobody';
      if (token.length < 32) return userNamed(token);
      const user = await keys.authenticator.authenticate(token);
      const key = keys.index.byUid(user?.extra[EXTRA.keyUid]?.[0] ?? '');
      if (key) keys.activity.recordUse(key);
      return user;
    },
    version: { major: '1', minor: '32', gitVersion: 'v1.32.1' },
    registry: keys.registry,
  });
  const client = new RawClient({ url: `http://${server.address}` });
  const send: KeyServer['send'] = (method, path, body, headers = {}) => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    return client.send({
      method,
      path,
      headers: { 'content-type': type, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  };
  return {
    keys,
    store,
    client,
    server,
    send,
    create: async (name, spec = {}, metadata = {}) => {
      const body = { metadata: { name, ...metadata }, spec: { ...MINIMAL, ...spec } };
      const answer = await send('POST', KEYS_PATH, body);
      if (answer.status !== 201) throw new Error(`not created: ${answer.text}`);
      return answer.json ?? {};
    },
    [Symbol.asyncDispose]: async () => {
      await client[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await keys.stop();
      if (!options.store) await store[Symbol.asyncDispose]();
    },
  };
}

export const MINIMAL: JsonObject = { displayName: 'D', ttl: 60, type: 'User', user: 'u' };

/** `spec.key` of an answer. */
export function keyOf(object: JsonObject): string {
  const key = isJsonObject(object['spec']) ? object['spec']['key'] : undefined;
  return typeof key === 'string' ? key : '';
}

/** `metadata.resourceVersion`, `spec.ttl`: a member of a member. */
export function at(object: JsonObject | null | undefined, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = object ?? undefined;
  for (const part of path.split('.')) value = isJsonObject(value) ? value[part] : undefined;
  return value;
}
