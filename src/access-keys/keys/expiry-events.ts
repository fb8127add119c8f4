/**
 * Reports expired keys: an Event that `kubectl get events` shows for an hour, and, when the key is deleted, an entry in the audit log. Replicas
 * create an Event of the same name, so that there is one per key.
 */

import { auditEvent, type AuditEvent, type RequestRecord } from '../../apiserver/request/request-info.ts';
import { KEEP_EXPIRED_MS } from './stored-key.ts';
import { randomUUID } from 'node:crypto';
import {
  MANAGEMENT_API_VERSION,
  MANAGEMENT_GROUP,
  MANAGEMENT_VERSION,
  SERVER_WRITE,
  SUBJECT_ANNOTATION,
  subjectOfEvent,
} from '../identity.ts';
import type { ObjectRegistry } from '../../apiserver/objects/object-registry.ts';
import { isRevisionConflict, type ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import { KEYS } from '../authorization/grants.ts';
import { SERVER_USER } from '../../apiserver/user.ts';
import { decodeObject } from '../../apiserver/schema/decode.ts';
import { StoreError, type Store } from '../../apiserver/storage/store.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { type JsonObject, text } from '../../base/json.ts';
import type { Logger } from '../../base/logger.ts';
import { OutageLog } from '../../base/outage-log.ts';
import { microTime, metadataOf, timeText } from '../../kube/object.ts';
import { StatusError } from '../../kube/status-error.ts';
import type { IndexedKey } from './key-index.ts';

/** As long as a kube-apiserver keeps Events. */
const EVENT_LIFE_MS = 3_600_000;
/** Events of cluster-scoped objects are in this namespace. */
const NAMESPACE = 'default';
/** Further keys have no Event: a client that creates short-lived keys must not fill the store. */
export const EVENTS_PER_SUBJECT_MAX = 100;
const EVENTS_MAX = 10_000;
const NAME_CHARACTERS_MAX = 200;
const COMPONENT = 'endpoint-syncer';

interface ExpiryEventsOptions {
  readonly definition: ResourceDefinition;
  readonly registry: ObjectRegistry;
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  audit(event: AuditEvent): void;
}

export class ExpiryEvents {
  readonly #options: ExpiryEventsOptions;
  readonly #outage: OutageLog;
  #timer: Timer | undefined;
  #sweeping: Promise<void> = Promise.resolve();
  #isStopped = false;
  /** Events in the store by subject, without those that other replicas created since the last sweep. */
  #counts = new Map<string, number>();
  #total = 0;

  constructor(options: ExpiryEventsOptions) {
    this.#options = options;
    this.#outage = new OutageLog(options.logger, 'cannot report an expired access key');
  }

  /** Deletes Events that are older than an hour, now and later. */
  start(): void {
    this.#sweep();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#sweeping;
  }

  deleted(key: IndexedKey, endMs: number): void {
    this.#options.audit(auditEntry(key, endMs, this.#options.clock.now()));
  }

  /** Never rejects: a report that fails is logged. `endMs`: when the key expired. */
  async expired(key: IndexedKey, endMs: number): Promise<void> {
    const { definition, registry, clock } = this.#options;
    const nowMs = clock.now();
    // Its Event would be one of an hour ago.
    if (nowMs - endMs >= EVENT_LIFE_MS || this.#isFull(key.user.name)) return;
    try {
      const { value } = decodeObject(definition.schema, eventOf(key, endMs, nowMs));
      const target = { definition, namespace: NAMESPACE, name: '', subresource: undefined };
      await registry.create(target, value, SERVER_WRITE);
      this.#outage.ended();
      this.#count(key.user.name);
      this.#scheduleSweep(EVENT_LIFE_MS);
    } catch (error) {
      const isReported = error instanceof StatusError && error.code === 409;
      if (!isReported) this.#outage.failed({ err: error, key: key.name });
    }
  }

  #isFull(subject: string): boolean {
    return this.#total >= EVENTS_MAX || (this.#counts.get(subject) ?? 0) >= EVENTS_PER_SUBJECT_MAX;
  }

  #count(subject: string): void {
    this.#total++;
    this.#counts.set(subject, (this.#counts.get(subject) ?? 0) + 1);
  }

  #scheduleSweep(delayMs: number): void {
    if (this.#isStopped || this.#timer) return;
    this.#timer = this.#options.clock.schedule(delayMs, () => {
      this.#timer = undefined;
      this.#sweep();
    });
  }

  #sweep(): void {
    this.#sweeping = this.#deleteOld().catch((error: unknown) => {
      if (error instanceof StoreError && error.code === 'closed') return;
      this.#options.logger.warn({ err: error }, 'cannot delete old Events, retrying in an hour');
      this.#scheduleSweep(EVENT_LIFE_MS);
    });
  }

  async #deleteOld(): Promise<void> {
    const { store, definition, clock } = this.#options;
    const { entries } = await store.list({ resource: definition.storage });
    let nextMs = Number.POSITIVE_INFINITY;
    this.#counts = new Map();
    this.#total = 0;
    for (const { key, value, revision } of entries) {
      const endMs = Date.parse(text(metadataOf(value), 'creationTimestamp')) + EVENT_LIFE_MS;
      if (endMs > clock.now()) {
        nextMs = Math.min(nextMs, endMs);
        this.#count(subjectOfEvent(value));
      } else await store.delete(key, revision).catch(unlessDeleted);
    }
    if (Number.isFinite(nextMs)) this.#scheduleSweep(nextMs - clock.now());
  }
}

/** Another replica may have deleted it. */
function unlessDeleted(error: unknown): void {
  if (!isRevisionConflict(error)) throw error;
}

/** A cut name may end in a character that no part of a name ends in. */
function eventNamePrefix(name: string): string {
  return /^.*[a-z0-9]/.exec(name.slice(0, NAME_CHARACTERS_MAX))?.[0] ?? '';
}

function eventOf(key: IndexedKey, endMs: number, nowMs: number): JsonObject {
  return {
    metadata: {
      name: `${eventNamePrefix(key.name)}.${key.uid}`,
      namespace: NAMESPACE,
      annotations: { [SUBJECT_ANNOTATION]: key.user.name },
    },
    regarding: {
      apiVersion: MANAGEMENT_API_VERSION,
      kind: 'OwnedAccessKey',
      name: key.name,
      uid: key.uid,
      resourceVersion: String(key.revision),
    },
    reason: 'Expired',
    note: `The access key expired at ${timeText(endMs)} and will be deleted at ${timeText(endMs + KEEP_EXPIRED_MS)}`,
    type: 'Normal',
    action: 'Expire',
    eventTime: microTime(nowMs),
    reportingController: COMPONENT,
    reportingInstance: COMPONENT,
  };
}

function auditEntry(key: IndexedKey, endMs: number, nowMs: number): AuditEvent {
  const record: RequestRecord = {
    id: randomUUID(),
    url: `/apis/${MANAGEMENT_API_VERSION}/${KEYS}/${key.name}`,
    address: '',
    userAgent: '',
    receivedMs: nowMs,
    verb: 'delete',
    path: {
      group: MANAGEMENT_GROUP,
      version: MANAGEMENT_VERSION,
      resource: KEYS,
      namespace: '',
      name: key.name,
      subresource: '',
    },
    user: SERVER_USER,
    decision: 'allow',
    reason: '',
    writtenName: '',
  };
  const event = auditEvent(record, 200, nowMs);
  const facts = { 'platform.sh/expired-at': timeText(endMs), 'platform.sh/key-uid': key.uid };
  return { ...event, sourceIPs: [], annotations: { ...event.annotations, ...facts } };
}
