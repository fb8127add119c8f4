/** Detects EndpointSlices of our copies that another syncer also writes: vCluster copies what the virtual cluster's mirroring controller generates, the
 * host's mirroring controller adopts it for our copy, and both write it, with and without the patches. Such a slice has the controller's label, our
 * marker, and a name that the controller would not generate (`generateName` is dropped with the first update of the metadata). After a clean take-over
 * the name stays, so the other syncer must also have written lately, or last. */

import { messageOf } from '../base/errors.ts';
import { sleep, type Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Config } from './config/config.ts';
import {
  CONTROLLER_MANAGERS,
  ENDPOINT_SLICES,
  ENDPOINTS,
  type KubeObject,
  type ManagedFieldsEntry,
} from '../kube/object.ts';
import { LABEL_LENGTH_MAX } from '../kube/names.ts';
import { isJsonObject } from '../base/json.ts';
import { FIELD_MANAGER, namedVirtual } from './translate/bookkeeping.ts';
import { ignoreNotFound } from '../kube/status-error.ts';
import type { ClusterClient, EventRecorder } from '../kube/types.ts';
import { listMarked } from './reconcile/marked-copies.ts';
import { hostNamespaces } from './translate/namespace-mappings.ts';
import type { NameTranslator } from './translate/types.ts';

export interface SliceCheckOptions {
  readonly config: Config;
  readonly clients: { readonly virtual: ClusterClient; readonly host: ClusterClient };
  readonly names: NameTranslator;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
}

const FIRST_DELAYS_MS = [10_000, 20_000];
/** Shorter than `status` takes an Event for current, so that it shows a fight as long as it lasts. */
const PERIOD_MS = 5 * 60_000;
/** Between the reads of a slice that the controller writes: whatever the phase of a fight whose rhythm is 20 ms to 1.5 s, a read falls into each
 * quarter of it. Found by search; no regular distances have that. */
const READ_AGAIN_MS = [64, 95, 87, 126, 47, 48, 187, 33, 51, 151, 40, 49, 23, 13, 101, 17, 15, 157];
const REPORTED_MAX = 100;
const READ_AGAIN_MAX = 20;
const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const MIRRORING = 'endpointslicemirroring-controller.k8s.io';
const SERVICE_NAME = 'kubernetes.io/service-name';
/** A fight writes many times a second. */
const RECENT_MS = 60_000;
const RANDOM_CHARS = 5;
const NOTE =
  'Another syncer, most likely that of vCluster, also writes the EndpointSlice "%" of the host copy, without the patches. ' +
  "Set sync.toHost.endpointSlices.enabled to false in vCluster's values.";

/** Runs until `signal` aborts. Requires the right to list slices; without it, nothing is reported. */
export async function checkSlices(options: SliceCheckOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger } = options;
  // The times of managedFields are whole seconds: of a write in the second of the start, nothing says whether it came before or after.
  const startedMs = Math.ceil(clock.now() / 1000) * 1000;
  for (let round = 0; ; round++) {
    await sleep(clock, FIRST_DELAYS_MS[round] ?? PERIOD_MS, signal);
    if (signal.aborted) return;
    try {
      // What another syncer wrote before the start may have been its last write.
      await reportContested(options, Math.max(startedMs, clock.now() - RECENT_MS), signal);
    } catch (error) {
      const why = messageOf(error);
      logger.debug({ error: why }, 'EndpointSlices of the host cannot be checked');
    }
  }
}

async function reportContested(
  options: SliceCheckOptions,
  sinceMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { config, clients, names } = options;
  const slices = await listMarked(clients.host, ENDPOINT_SLICES, {
    vcluster: names.vcluster,
    namespaces: hostNamespaces(config),
  });
  const adopted = slices.filter(isAdopted);
  const unclear = adopted.filter(
    (slice) => !hasOtherWriter(slice, sinceMs) && isWrittenSince(slice, sinceMs),
  );
  const fought = await Promise.all(
    unclear.slice(0, READ_AGAIN_MAX).map((slice) => whenFoughtOver(slice, sinceMs, options, signal)),
  );
  const contested = [...adopted.filter((slice) => hasOtherWriter(slice, sinceMs)), ...fought.flat()];
  for (const slice of contested.slice(0, REPORTED_MAX)) await report(slice, sinceMs, options);
}

/** Each writer of a fight may take every field from the other, so a slice that the controller writes now is read until both have had their turn.
 * Empty: the other had none. */
async function whenFoughtOver(
  { metadata: { namespace = '', name, labels } }: KubeObject,
  sinceMs: number,
  { clients, clock }: SliceCheckOptions,
  signal: AbortSignal,
): Promise<readonly KubeObject[]> {
  // A list needs no other right than the one that the check has.
  const ofService = {
    namespace,
    labelSelector: `${SERVICE_NAME}=${labels?.[SERVICE_NAME] ?? ''}`,
    isMetadataOnly: true,
  };
  for (const delayMs of READ_AGAIN_MS) {
    await sleep(clock, delayMs, signal);
    if (signal.aborted) return [];
    const { items } = await clients.host.list(ENDPOINT_SLICES, ofService);
    const slice = items.find(({ metadata }) => metadata.name === name);
    if (slice !== undefined && hasOtherWriter(slice, sinceMs)) return [slice];
  }
  return [];
}

function isWrittenSince(slice: KubeObject, sinceMs: number): boolean {
  return lastWriteMs(slice, () => true) >= sinceMs;
}

function timeOf({ time = '' }: ManagedFieldsEntry): number {
  return Date.parse(time) || 0;
}

/** The mirroring controller has adopted the slice but did not create it. */
function isAdopted({ metadata: { name, labels } }: KubeObject): boolean {
  return labels?.[MANAGED_BY] === MIRRORING && !isGeneratedFor(labels[SERVICE_NAME] ?? '', name);
}

/** A field manager other than the controller has written since then, or it wrote the endpoints and the controller nothing after that. Where the
 * controller wrote later, it has left the endpoints as they are because they are right. */
function hasOtherWriter(slice: KubeObject, sinceMs: number): boolean {
  const controllerMs = lastWriteMs(slice, isController);
  return entriesOf(slice, isOther).some((entry) => {
    const ownsEndpoints = isJsonObject(entry.fieldsV1) && Object.hasOwn(entry.fieldsV1, 'f:endpoints');
    return timeOf(entry) >= sinceMs || (ownsEndpoints && timeOf(entry) > controllerMs);
  });
}

/** False while the controller has still to react to the copy: this program has not taken it over yet, or after the other syncer's last write. */
function mayControllerHaveReacted(slice: KubeObject, copy: KubeObject, sinceMs: number): boolean {
  const [otherMs, copiedMs] = [lastWriteMs(slice, isOther), lastWriteMs(copy, isOwn)];
  return otherMs >= sinceMs || (copiedMs > 0 && copiedMs < otherMs);
}

type WriterTest = (entry: ManagedFieldsEntry) => boolean;

const isOwn: WriterTest = ({ manager }) => manager === FIELD_MANAGER;
const isController: WriterTest = ({ manager }) => CONTROLLER_MANAGERS.has(manager);
const isOther: WriterTest = (entry) => !isOwn(entry) && !isController(entry);

function entriesOf({ metadata: { managedFields = [] } }: KubeObject, isBy: WriterTest): ManagedFieldsEntry[] {
  return managedFields.filter(isBy);
}

/** 0: never. */
function lastWriteMs(object: KubeObject, isBy: WriterTest): number {
  return Math.max(0, ...entriesOf(object, isBy).map(timeOf));
}

/** API servers generate names from the prefix `SERVICE-`, cut to 58 characters, and five random characters. */
function isGeneratedFor(service: string, name: string): boolean {
  return name.slice(0, -RANDOM_CHARS) === `${service}-`.slice(0, LABEL_LENGTH_MAX - RANDOM_CHARS);
}

async function report(
  slice: KubeObject,
  sinceMs: number,
  { clients, names, recorder, logger }: SliceCheckOptions,
): Promise<void> {
  const { namespace = '', name, labels } = slice.metadata;
  const copy = await ignoreNotFound(
    clients.host.get(ENDPOINTS, { namespace, name: labels?.[SERVICE_NAME] ?? '' }),
  );
  if (copy === undefined || !mayControllerHaveReacted(slice, copy, sinceMs)) return;
  const key = namedVirtual(copy, ENDPOINTS, names);
  const virtual = key && (await ignoreNotFound(clients.virtual.get(ENDPOINTS, key)));
  if (virtual === undefined) return;
  const note = NOTE.replace('%', `${namespace}/${name}`);
  const fields = { key: `${key?.namespace}/${key?.name}`, slice: `${namespace}/${name}`, note };
  logger.warn(fields, 'slice is contested');
  recorder.event(virtual, ENDPOINTS, { type: 'Warning', reason: 'Contested', note });
}
