/** Composes the parts of OwnedAccessKey: the resource, its index, authentication, recorded use, and the collector. */

import { coreEvents, groupEvents } from '../../apiserver/event-kinds.ts';
import type { Authorizer, AuditEvent } from '../../apiserver/request/request-info.ts';
import { ObjectRegistry } from '../../apiserver/objects/object-registry.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../base/logger.ts';
import type { WriteAuthorizer } from '../authorization/write-authorizer.ts';
import type { Store } from '../../apiserver/storage/store.ts';
import { type RandomBytes, KeyDigests } from '../credentials/access-key.ts';
import type { MasterKey } from '../credentials/master-key.ts';
import type { KeyActivity } from './key-activity.ts';
import { KeyAdmission } from './key-admission.ts';
import { KeyAuthenticator } from './key-authenticator.ts';
import { ExpiryEvents } from './expiry-events.ts';
import { KeyCollector } from './key-collector.ts';
import type { IndexedKey, KeyIndex } from './key-index.ts';
import { ownedAccessKeys } from './key-kind.ts';
import { StoredKeys } from './stored-key.ts';

interface KeysOptions {
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
  /** Of `store`; not started. */
  readonly index: KeyIndex;
  readonly activity: KeyActivity;
  readonly authorizer: Authorizer;
  /** Throws a `StatusError` for a write that the writer may not do. */
  readonly writes: Pick<WriteAuthorizer, 'authorize'>;
  /** Receives the deletion of expired keys, which are not requests. */
  audit(event: AuditEvent): void;
}

export type Keys = ReturnType<typeof composeKeys>;

export function composeKeys(options: KeysOptions) {
  const { clock, types, masterKey, randomBytes, index, activity } = options;
  const digests = new KeyDigests(masterKey.pepper);
  const forms = new StoredKeys({ digests, seal: masterKey.seal, randomBytes, overlay: activity });
  const definition = ownedAccessKeys({ ...options, forms, digests });
  const events = readOnly(groupEvents(types));
  const authenticator = new KeyAuthenticator({ digests, index, activity, clock });
  const registry = new ObjectRegistry({ ...options, admission: new KeyAdmission({ ...options, digests }) });
  const expiry = new ExpiryEvents({ ...options, registry, definition: events });
  const collector = new KeyCollector({ ...options, registry, definition, expiry });
  return {
    definition,
    /** Events about keys, read-only for clients. */
    events,
    /** The same in the core group, where `kubectl describe` and `kubectl events` read them without asking discovery. */
    coreEvents: readOnly(coreEvents(types)),
    index,
    activity,
    digests,
    authenticator,
    /** The one registry over the store. */
    registry,
    /** See {@link KeyCollector.onExpired}. */
    onExpired: (listener: (key: IndexedKey) => void): void => collector.onExpired(listener),
    /** Before the first request. Rejects with `StoreError`. */
    start: async (): Promise<void> => {
      index.onChange(({ now, before }) => {
        if (before && before.uid !== now?.uid) activity.forget(before.uid);
        if (now && now.problem !== before?.problem) warnOfProblem(now, options.logger);
      });
      // The notes are read before the keys: a key with a note that is not in the list was deleted.
      await activity.read();
      index.start();
      for (const uid of activity.uids) if (!index.byUid(uid)) activity.forget(uid);
      for (const key of index.all()) warnOfProblem(key, options.logger);
      collector.start();
      expiry.start();
    },
    /** After the last request, before the store closes. */
    stop: async (): Promise<void> => {
      authenticator.stop();
      await collector.stop();
      await expiry.stop();
      index.stop();
      registry.close();
      await activity.stop();
    },
  };
}

function readOnly(kind: ResourceDefinition): ResourceDefinition {
  return { ...kind, verbs: ['get', 'list', 'watch'] };
}

/** Of a key that was stored by other means than this API. */
function warnOfProblem({ name, problem }: IndexedKey, logger: Logger): void {
  if (problem === undefined) return;
  logger.warn({ name, problem }, 'a stored access key is damaged, and requests that use it fail: delete it');
}
