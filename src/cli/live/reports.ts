/** What running daemons reported: Events on virtual objects, and the Lease that one replica holds, with the configuration in use. */

import { textAt, isJsonObject, ownValue, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import { configurationHash, type Config } from '../../syncer/config/config.ts';
import { noteOf } from '../../fleet/member-note.ts';
import { isReplica } from '../../fleet/replicas.ts';
import { FLEET } from '../../fleet/vcluster.ts';
import { asJson, EVENTS, keyOf, type KubeObject } from '../../kube/object.ts';
import { LEASES } from '../../kube/lease.ts';
import { ignoreNotFound, isForbidden, isNotFound, StatusError } from '../../kube/status-error.ts';
import type { ClusterClient } from '../../kube/types.ts';
import { CONFIGURATION, leaseName } from '../../syncer/leadership.ts';
import type { DaemonFacts, ReportedEvent } from '../../syncer/rehearsal/object-status.ts';
import { listAll } from '../../syncer/rehearsal/connection.ts';

const CONTROLLER = 'endpoint-syncer/controller';

/** Events by uid of the object that they are about, the latest first. */
export type ReportedEvents = ReadonlyMap<string, readonly ReportedEvent[]>;

/** All that may be read; a user without the right to list Events sees none. */
export async function readEvents(virtual: ClusterClient, namespace = ''): Promise<ReportedEvents> {
  let events: KubeObject[];
  try {
    events = await listAll(virtual, EVENTS, [namespace]);
  } catch {
    return new Map();
  }
  const ours = events.map(asJson).filter((event) => textAt(event, 'reportingController') === CONTROLLER);
  const byUid = Map.groupBy(ours, (event) => textAt(event, 'regarding', 'uid'));
  return new Map(
    [...byUid].map(([uid, of]) => [uid, of.map(reportedEvent).toSorted((a, b) => b.lastMs - a.lastMs)]),
  );
}

function reportedEvent(event: JsonObject): ReportedEvent {
  const [type, reason, note] = [textAt(event, 'type'), textAt(event, 'reason'), textAt(event, 'note')];
  const times = [['series', 'lastObservedTime'], ['deprecatedLastTimestamp'], ['eventTime']];
  return { type, reason, note, lastMs: Math.max(...times.map((path) => timeOf(valueAt(event, path)))) };
}

export interface DaemonState extends DaemonFacts {
  readonly fleetNote: string | undefined;
  /** The Lease; undefined: no daemon has created it, or this user may not read it. */
  readonly object: KubeObject | undefined;
}

export async function readDaemon(config: Config, client: ClusterClient, nowMs: number): Promise<DaemonState> {
  const { name, host, leaderElection } = config;
  const place = { namespace: host.namespace, name: leaseName(name) };
  const object = await client.get(LEASES, place).catch((error: unknown) => {
    // Without leader election the right to read it is optional.
    if (isNotFound(error) || (error instanceof StatusError && !leaderElection.enabled)) return undefined;
    throw error;
  });
  const stated = holderOf(object, nowMs);
  const holder = object === undefined || (await isEnded(stated, object, client, nowMs)) ? '' : stated;
  const published = object?.metadata.annotations?.[CONFIGURATION] ?? '';
  const isInCharge = published !== '' && (holder !== '' || !leaderElection.enabled);
  return {
    lease: leaderElection.enabled || holder !== '' ? { key: keyOf(place), holder } : undefined,
    runsOther: isInCharge && published !== configurationHash(config),
    fleetNote: await readFleetNote(object, client, nowMs),
    object,
  };
}

/** A replica that does not sync a member does not hold its Lease, but says why there. */
export async function readFleetNote(
  lease: KubeObject | undefined,
  client: ClusterClient,
  nowMs: number,
): Promise<string | undefined> {
  const note = noteOf(lease);
  if (lease === undefined || note === undefined) return undefined;
  const { replica, state, reason } = note;
  const isHeld = !['', replica].includes(holderOf(lease, nowMs));
  if (isHeld || (await isEnded(replica, lease, client, nowMs))) return undefined;
  const retried = state === 'failed' ? '; the fleet tries again, after a minute at most' : '';
  return `${state}: ${reason}${retried}`;
}

/**
 * A replica of a fleet renews its own Lease, and the Leases of its members hardly ever. It has ended if its Lease is gone or has expired; unknown, and
 * so not, if the Lease may not be read.
 */
async function isEnded(
  holder: string,
  { metadata }: KubeObject,
  client: ClusterClient,
  nowMs: number,
): Promise<boolean> {
  const namespace = metadata.annotations?.[FLEET];
  if (!isReplica(holder) || namespace === undefined) return false;
  try {
    const lease = await ignoreNotFound(client.get(LEASES, { namespace, name: holder }));
    return holderOf(lease, nowMs) === '';
  } catch (error) {
    if (isForbidden(error)) return false;
    throw error;
  }
}

/** '' once the Lease has expired. */
function holderOf(lease: KubeObject | undefined, nowMs: number): string {
  const spec = lease?.['spec'];
  if (!isJsonObject(spec)) return '';
  const seconds = ownValue(spec, 'leaseDurationSeconds');
  const endMs = timeOf(ownValue(spec, 'renewTime')) + (typeof seconds === 'number' ? seconds * 1000 : 0);
  return endMs > nowMs ? textAt(spec, 'holderIdentity') : '';
}

function timeOf(value: JsonValue | undefined): number {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? 0 : ms;
}
