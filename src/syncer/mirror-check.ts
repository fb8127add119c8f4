/** Detects copies of Endpoints that have no effect, because no mirroring controller makes EndpointSlices of them: kube-proxy reads slices alone, and the
 * controller is on its way to becoming optional. */

import { messageOf } from '../base/errors.ts';
import { sleep, type Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { objectField } from '../base/json.ts';
import {
  asJson,
  ENDPOINT_SLICES,
  keyOf,
  objectKey,
  parseKey,
  SERVICES,
  type KubeObject,
  type ObjectKey,
} from '../kube/object.ts';
import { listPages } from '../kube/list-pages.ts';
import { ignoreNotFound } from '../kube/status-error.ts';
import type { ClusterClient, Lister, RecordedEvent } from '../kube/types.ts';
import { MANAGED_BY, MIRRORING_CONTROLLER, SERVICE_NAME } from './kinds/endpoint-slices.ts';
import { addressesOfEndpoints, ambiguousPortName, isMirrored } from './kinds/endpoints.ts';
import { hasSelector, NO_EFFECT } from './kinds/kind.ts';
import { isElected } from './translate/bookkeeping.ts';

/** A copy in step, and its original. */
export interface ServedCopy {
  readonly virtual: KubeObject;
  readonly host: KubeObject;
}

export interface MirrorCheckOptions {
  readonly client: Pick<ClusterClient, 'get' | 'list'>;
  /** Copies of Endpoints that are in the cache. */
  readonly copies: () => Iterable<ServedCopy>;
  readonly hostServices: Pick<Lister, 'get'>;
  report(virtual: KubeObject, notice: RecordedEvent): void;
  readonly clock: Clock;
  readonly logger: Logger;
}

const ROUND_MS = 10_000;
/** Since the copy and its host Service were seen together first. */
const GRACE_MS = 30_000;
/** Shorter than `status` takes an Event for current. The same note is one Event. */
const AGAIN_MS = 5 * 60_000;
/** More Services than this in a namespace are looked for in one list. */
const LISTED_MAX = 20;

/** What is known of a copy with a host Service. */
interface Watched {
  /** Both uids: another copy or Service is looked at anew. */
  readonly id: string;
  /** When its slice is looked for, monotonic; undefined: it was there. */
  dueMs: number | undefined;
}

/** Runs until `signal` aborts. Requires the right to list slices; without it, nothing is reported. */
export async function checkMirrors(options: MirrorCheckOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger } = options;
  let watched: ReadonlyMap<ObjectKey, Watched> = new Map();
  for (;;) {
    await sleep(clock, ROUND_MS, signal);
    if (signal.aborted) return;
    const served = new Map(servedCopies(options));
    watched = nextWatched(watched, served, options);
    const nowMs = clock.monotonicMs();
    const due = [...watched].filter(([, { dueMs = Infinity }]) => dueMs <= nowMs);
    for (const [, one] of due) one.dueMs = nowMs + AGAIN_MS;
    try {
      const missing = await withoutSlice(options.client, new Set(due.map(([key]) => key)));
      for (const [key, one] of due) {
        const copy = missing.has(key) ? served.get(key) : undefined;
        if (copy === undefined) one.dueMs = undefined;
        // Of the others, no controller makes a slice, and the kind says so.
        else if (ambiguousPortName(copy.host) === undefined) options.report(copy.virtual, notMirrored(key));
      }
    } catch (error) {
      logger.debug({ error: messageOf(error) }, 'mirrored EndpointSlices of the host cannot be checked');
    }
  }
}

/** By their host keys. Empty Endpoints have no slice. */
function* servedCopies({ copies, hostServices }: MirrorCheckOptions): Generator<[ObjectKey, ServedCopy]> {
  for (const copy of copies()) {
    const key = objectKey(copy.host);
    const isExpected = isMirrored(copy.host) && !isElected(copy.host) && hasAddress(copy.host);
    if (isExpected && hostServices.get(key) !== undefined) yield [key, copy];
  }
}

function hasAddress(endpoints: KubeObject): boolean {
  return addressesOfEndpoints(endpoints).served(endpoints)[Symbol.iterator]().next().done !== true;
}

function nextWatched(
  before: ReadonlyMap<ObjectKey, Watched>,
  served: ReadonlyMap<ObjectKey, ServedCopy>,
  { hostServices, clock }: MirrorCheckOptions,
): ReadonlyMap<ObjectKey, Watched> {
  const dueMs = clock.monotonicMs() + GRACE_MS - ROUND_MS;
  return new Map(
    [...served].map(([key, { host }]) => {
      const id = `${host.metadata.uid} ${hostServices.get(key)?.metadata.uid}`;
      const known = before.get(key);
      return [key, known?.id === id ? known : { id, dueMs }];
    }),
  );
}

/** Those of the Services without a selector that have no slice of the mirroring controller. */
async function withoutSlice(
  client: MirrorCheckOptions['client'],
  services: ReadonlySet<ObjectKey>,
): Promise<ReadonlySet<ObjectKey>> {
  const missing = new Set(services);
  for (const [namespace, keys] of Map.groupBy(services, (key) => parseKey(key).namespace)) {
    const selectors =
      keys.length > LISTED_MAX ? [''] : keys.map((key) => `,${SERVICE_NAME}=${parseKey(key).name}`);
    for (const selector of selectors) {
      const labelSelector = `${MANAGED_BY}=${MIRRORING_CONTROLLER}${selector}`;
      const scope = { namespace, labelSelector, isMetadataOnly: true };
      for (const { metadata } of await listPages(client, ENDPOINT_SLICES, scope, (slice) => slice))
        missing.delete(keyOf({ namespace, name: metadata.labels?.[SERVICE_NAME] ?? '' }));
    }
  }
  for (const key of missing) {
    const service = await ignoreNotFound(client.get(SERVICES, parseKey(key)));
    if (service === undefined || isNotMirrored(service)) missing.delete(key);
  }
  return missing;
}

function isNotMirrored(service: KubeObject): boolean {
  return hasSelector(service) || objectField(asJson(service), 'spec')['type'] === 'ExternalName';
}

function notMirrored(key: ObjectKey): RecordedEvent {
  const note =
    `The host has made no EndpointSlice of the copy "${key}" for 30 s, so its Service has no addresses of this object: most likely the host does not run ` +
    'the EndpointSlice mirroring controller. Set sync.toHost.endpoints.enabled: false, with sync.toHost.endpointSlices.enabled: true: then the slices ' +
    'that the controller of this cluster makes are copied.';
  return { ...NO_EFFECT, note };
}
