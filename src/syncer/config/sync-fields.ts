/** Fields that decide which kinds and namespaces are synced, in a file that may be invalid elsewhere. */

import type { Fields } from '../../config-file/finding.ts';

/**
 * Kinds that this program patches, and that vCluster can sync too. `enabled: false` in vCluster's file leaves them to this program, so only its own
 * file enables or disables them.
 */
export const PATCHED_KEYS = ['endpoints', 'endpointSlices'] as const;

/** This program copies Services, so their patches are its own. */
export function syncsServices(fields: Fields): boolean {
  const services = 'endpointSyncer.services';
  return [fields.text(services), fields.text(`${services}.mode`)].includes('sync');
}

/** The keys of `sync.toHost` whose patches this program applies. */
export function patchedKeys(fields: Fields): readonly string[] {
  return [...PATCHED_KEYS, ...(syncsServices(fields) ? ['services'] : [])];
}

/** More than one host namespace receives objects. */
export function isMultiNamespace(fields: Fields): boolean {
  return (
    fields.isOn('sync.toHost.namespaces.enabled') || fields.isOn('experimental.multiNamespaceMode.enabled')
  );
}
