/** Composes the parts of OwnedAccessKey: the resource, its index, authentication, recorded use, and the collector. */

import type { AdmissionRequest } from '../../apiserver/objects/object-writer.ts';
import { coreEvents, groupEvents } from '../../apiserver/event-kinds.ts';
import type { AuditEvent } from '../../apiserver/request/audit-event.ts';
import type { Authorizer } from '../../apiserver/request/request-info.ts';
import { ObjectDeleter } from '../../apiserver/objects/object-deletion.ts';
import { ObjectRegistry } from '../../apiserver/objects/object-registry.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../base/logger.ts';
import { KEY_BYTES_MAX } from './key-validation.ts';
import type { Store } from '../../apiserver/storage/store.ts';
import { type RandomBytes, KeyDigests } from '../credentials/access-key.ts';
import type { MasterKey } from '../credentials/master-key.ts';
import { EXTRA } from '../identity.ts';
import { KeyActivity } from './key-activity.ts';
import { KeyAdmission } from './key-admission.ts';
import { KeyAuthenticator } from './key-authenticator.ts';
import { ExpiryEvents } from './expiry-events.ts';
import { KeyCollector, KeyRemoval } from './key-collector.ts';
import { KeyIndex } from './key-index.ts';
import type { IndexedKey } from './key-record.ts';
import { ownedAccessKeys, rotateSubresource } from './key-kind.ts';
import { StoredKeys } from './stored-key.ts';

/** Table of notes in the store with the last use of keys. */
const ACTIVITY_NOTES = 'activity';

export interface CreateKeysOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly randomBytes: RandomBytes;
  readonly logger: Logger;
  readonly masterKey: MasterKey;
  /** Holds `META_TYPES`, `EVENT_TYPES`, `SCOPE_TYPES` and `KEY_TYPES`. */
  readonly types: TypeTable;
  /** Maximum of `spec.ttl`; 0: none. */
  readonly maxTtlSeconds: number;
  /** Receives the deletion of expired keys, which are not requests. */
  audit(event: AuditEvent): void;
  /** See {@link KeyAdmission}. */
  authorizeWrite(write: AdmissionRequest): Promise<void>;
  /** Called when a write is reviewed, so the authorizer may depend on the index of these keys. */
  authorizer(): Authorizer;
}

export interface Keys {
  readonly definition: ResourceDefinition;
  /** Events about keys, read-only for clients. */
  readonly events: ResourceDefinition;
  /** The same in the core group, where `kubectl describe` and `kubectl events` read them without asking discovery. */
  readonly coreEvents: ResourceDefinition;
  readonly index: KeyIndex;
  readonly authenticator: Pick<KeyAuthenticator, 'authenticate'>;
  /** The one registry and deleter over the store. */
  readonly registry: ObjectRegistry;
  readonly deleter: ObjectDeleter;
  /** Called when a key has expired. Must not throw. */
  onExpired(listener: (key: IndexedKey) => void): void;
  /** Records an allowed request as a use of the key that the user was authenticated with, if any. */
  recordUse(user: UserInfo): void;
  /** Before the first request. Rejects with `StoreError`. */
  start(): Promise<void>;
  /** After the last request, before the store closes. */
  stop(): Promise<void>;
}

export function createKeys(options: CreateKeysOptions): Keys {
  const { store, clock, random, randomBytes, logger, masterKey, types } = options;
  const digests = new KeyDigests(masterKey.pepper);
  const activity = new KeyActivity({ notes: store.notes(ACTIVITY_NOTES), clock, logger });
  const index = new KeyIndex({ store, lastActivityMs: ({ uid }) => activity.lastMs(uid) });
  const forms = new StoredKeys({ digests, seal: masterKey.seal, randomBytes, overlay: activity });
  const events = readOnly(groupEvents(types));
  const rotate = rotateSubresource({ types, digests, randomBytes, clock });
  const definition = ownedAccessKeys(types, clock, options.maxTtlSeconds, forms, rotate);
  const authenticator = new KeyAuthenticator({ digests, index, activity, clock });
  const admission = new KeyAdmission({
    store,
    index,
    digests,
    clock,
    authorizeWrite: (write) => options.authorizeWrite(write),
    authorizer: () => options.authorizer(),
  });
  const registry = new ObjectRegistry({ store, clock, random, admission });
  const deleter = new ObjectDeleter(registry);
  const removal = new KeyRemoval({ store, registry, deleter, definition, logger });
  const expiry = new ExpiryEvents({
    definition: events,
    registry,
    store,
    clock,
    logger,
    audit: (event) => options.audit(event),
  });
  const collector = new KeyCollector({ index, activity, removal, expiry, clock, logger });
  return {
    definition,
    events,
    coreEvents: readOnly(coreEvents(types)),
    index,
    authenticator,
    registry,
    deleter,
    onExpired: (listener) => collector.onExpired(listener),
    recordUse: (user) => {
      const key = index.byUid(user.extra[EXTRA.keyUid]?.[0] ?? '');
      if (key) activity.recordUse(key);
    },
    start: async () => {
      index.onChange(({ now, before }) => {
        if (before && before.uid !== now?.uid) activity.forget(before.uid);
      });
      // The notes are read before the keys: a key with a note that is not in the list was deleted.
      await activity.read();
      index.start();
      for (const uid of activity.uids) if (!index.byUid(uid)) activity.forget(uid);
      warnOfLargeKeys(index, logger);
      collector.start();
      expiry.start();
    },
    stop: async () => {
      authenticator.stop();
      await collector.stop();
      await expiry.stop();
      index.stop();
      deleter.close();
      await activity.stop();
    },
  };
}

function readOnly(kind: ResourceDefinition): ResourceDefinition {
  return { ...kind, verbs: ['get', 'list', 'watch'] };
}

/** Of earlier versions, which had no limits. */
function warnOfLargeKeys(index: KeyIndex, logger: Logger): void {
  for (const { name, user, bytes } of index.all()) {
    if (bytes <= LARGE_BYTES) continue;
    const what =
      'an access key is larger than a key may be, and is held in memory: delete it, or remove data from it';
    logger.warn({ name, user: user.name, bytes, bytesMax: LARGE_BYTES }, what);
  }
}

/** Spec and annotations of the largest size, in base64 where they are sealed. */
const LARGE_BYTES = 3 * KEY_BYTES_MAX;
