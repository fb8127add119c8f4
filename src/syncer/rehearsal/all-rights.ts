/** All rights of a configuration, without a cluster: also those that are optional, or that no start checks. */

import { ENDPOINT_SLICES, NAMESPACES } from '../../kube/object.ts';
import type { Config } from '../config/config.ts';
import { guessedResource } from '../kinds/guessed-resource.ts';
import { syncedKinds } from '../kinds/synced-kinds.ts';
import { asReferencedKind, kindPolicy, type ReferencedKind } from '../references/referenced-kind.ts';
import { requiredRights, rightsOnEvents, rightsOnLease, type Right } from '../rights.ts';
import { hostNamespaces } from '../translate/namespace-mappings.ts';
import { ownerOf } from '../translation.ts';
import { KUBE_SYSTEM } from '../virtual-identity.ts';

/** Kinds that a reference may reach although no patch names them. The check at start does not cover their rights. */
export function openKinds(config: Config): readonly string[] {
  const { isOpen, reachable } = kindPolicy(config.sync);
  return isOpen ? reachable.map((id) => id.slice(id.indexOf('/') + 1)) : [];
}

/** Kinds are taken for those that their names say, without discovery. */
export function allRights(config: Config): readonly Right[] {
  return [
    ...requiredRights(config, { isDryRun: false, references: offlineReferences(config) }),
    ...uncheckedRights(config),
  ];
}

function offlineReferences(config: Config): readonly ReferencedKind[] {
  const policy = kindPolicy(config.sync);
  return policy.named.map(({ apiVersion, kind }) => {
    const resource = guessedResource(apiVersion, kind, config);
    return asReferencedKind(resource, resource, policy);
  });
}

/** Rights that the check at start does not cover: reading the owner, whose resource name discovery gives, the report of contested slices, the
 * Lease that only names the configuration in use, the Events on it, and the namespace whose uid tells the virtual cluster from others.
 */
function uncheckedRights(config: Config): readonly Right[] {
  const { host, sync, leaderElection } = config;
  const owner = ownerOf(config);
  const isSynced = syncedKinds(config).length > 0;
  const lease = leaderElection.enabled ? [] : rightsOnLease(config);
  const rights: Right[] = isSynced ? [...lease, ...rightsOnEvents(config)] : [];
  const cluster = 'host';
  const slices = { group: ENDPOINT_SLICES.group, resource: ENDPOINT_SLICES.plural };
  for (const namespace of sync.endpoints.enabled ? (hostNamespaces(config) ?? ['']) : [])
    rights.push({ cluster, verb: 'list', ...slices, namespace });
  if (isSynced)
    rights.push({ cluster: 'virtual', verb: 'get', group: '', resource: NAMESPACES.plural, ...KUBE_SYSTEM });
  // The default owner is a Service, and the right to get Services is part of the others.
  if (owner !== undefined && !owner.isOptional) {
    const { group, plural: resource } = guessedResource(owner.apiVersion, owner.kind, config);
    rights.push({ cluster, verb: 'get', group, resource, namespace: host.namespace, name: owner.name });
  }
  return rights;
}
