/**
 * Finds the configuration in use on the host: the ConfigMap or Secret that contains the text whose hash is on the Lease. Nothing else identifies it, because
 * any client with the right to write ConfigMaps or Secrets there chooses their names, labels and other contents.
 */

import { TerminalError } from '../../base/errors.ts';
import { configurationTextHash } from '../../config-file/source-file.ts';
import type { ConfigText } from '../../shared-config/layers.ts';
import { LEASES } from '../../kube/lease.ts';
import { CONFIG_MAPS, objectKey, SECRETS, type KubeObject, type Resource } from '../../kube/object.ts';
import { stringMapOf } from '../../kube/string-map.ts';
import { isForbidden } from '../../kube/status-error.ts';
import type { ClusterClient } from '../../kube/types.ts';
import { CONFIGURATION_TEXT } from '../../syncer/leadership.ts';
import { hasBookkeeping } from '../../syncer/translate/bookkeeping.ts';
import { listAll } from '../../syncer/rehearsal/connection.ts';
import { isReplica } from '../replicas.ts';
import { FLEET } from '../vcluster.ts';

/** The namespace of the fleet that syncs, or has synced, the vCluster of this Lease; '' if none has. The owner of its namespace can write it, a tenant cannot. */
export function fleetOf(lease: KubeObject | undefined): string {
  return lease?.metadata.annotations?.[FLEET] ?? '';
}

/** Of what the Lease of a vCluster says, and the replicas of its fleet: a member that is asleep, or has left, may not have got what they use now. */
export async function textHashes(host: ClusterClient, lease: KubeObject | undefined): Promise<Set<string>> {
  const fleet = fleetOf(lease);
  // Without the right to list them, there is the Lease of the member.
  const leases = fleet === '' ? [] : await listAll(host, LEASES, [fleet]).catch(() => []);
  const replicas = leases.filter(({ metadata: { name } }) => isReplica(name));
  const hashes = [lease, ...replicas].flatMap((one) => one?.metadata.annotations?.[CONFIGURATION_TEXT] ?? []);
  return new Set(hashes.filter((hash) => hash !== ''));
}

/** Undefined if no object of the namespace has such a text, or only one that a syncer has copied there. Secrets are listed only if no ConfigMap has it. */
export async function findConfiguration(
  host: ClusterClient,
  namespace: string,
  hashes: ReadonlySet<string>,
): Promise<ConfigText | undefined> {
  const isWanted = (text: string): boolean => hashes.has(configurationTextHash(text));
  for (const resource of [CONFIG_MAPS, SECRETS]) {
    const objects = await allowed(
      listAll(host, resource, [namespace]),
      `list ${resource.plural} in the host namespace "${namespace}"`,
      'pass --config',
    );
    for (const object of objects) {
      const text = hasBookkeeping(object) ? undefined : textsOf(object, resource).find(isWanted);
      if (text !== undefined) return { text, file: `${resource.kind} ${objectKey(object)}` };
    }
  }
  return undefined;
}

function textsOf(object: KubeObject, { kind }: Resource): readonly string[] {
  const texts = Object.values(stringMapOf(object['data']));
  return kind === SECRETS.kind ? texts.map((text) => Buffer.from(text, 'base64').toString('utf8')) : texts;
}

/** `rights`: what `request` needs. `otherwise`: what to do without. */
export async function allowed<T>(request: Promise<T>, rights: string, otherwise: string): Promise<T> {
  try {
    return await request;
  } catch (error) {
    if (!(error instanceof TerminalError && isForbidden(error.cause))) throw error;
    const message = `${error.cause.message}: this needs the rights to ${rights}; without them, ${otherwise}`;
    throw new TerminalError(message, { cause: error.cause });
  }
}
