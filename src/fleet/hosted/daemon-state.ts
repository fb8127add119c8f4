/** Whether a daemon is in charge of a vCluster, by the Lease that one replica holds, with the configuration in use; of a member of a fleet also why it is not synced. */

import { textAt, isJsonObject, ownValue, type JsonValue } from '../../base/json.ts';
import { LEASES } from '../../kube/lease.ts';
import { keyOf, type KubeObject } from '../../kube/object.ts';
import { ignoreNotFound, isForbidden, isNotFound, StatusError } from '../../kube/status-error.ts';
import type { ClusterClient } from '../../kube/types.ts';
import { configurationHash, type Config } from '../../syncer/config/config.ts';
import { CONFIGURATION, leaseName } from '../../syncer/leadership.ts';
import { reaching } from '../../syncer/rehearsal/connection.ts';
import type { DaemonState } from '../../syncer/rehearsal/sync-status.ts';
import { noteOf } from '../member-note.ts';
import { isReplica } from '../replicas.ts';
import { FLEET } from '../vcluster.ts';

/** Rejects with `TerminalError` where the host does not respond, or the Lease may not be read. */
export function readDaemon(config: Config, host: ClusterClient, nowMs: number): Promise<DaemonState> {
  return reaching('host', () => daemonState(config, host, nowMs));
}

async function daemonState(config: Config, client: ClusterClient, nowMs: number): Promise<DaemonState> {
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
    isOfFleet: isReplica(holder),
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
