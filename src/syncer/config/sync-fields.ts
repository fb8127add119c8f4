/** Fields that decide which kinds and namespaces are synced, in a file that may be invalid elsewhere. */

import type { Fields } from '../../config-file/finding.ts';
import { SHARED_KEYS, syncableKind, SYNCED_KEYS, type SyncedKey } from '../kinds/synced-kinds.ts';

export function isEnabled(fields: Fields, key: SyncedKey): boolean {
  return fields.isOn(`sync.toHost.${key}.enabled`, syncableKind(key)?.isEnabledByDefault);
}

/** This program copies Services, so their patches are its own. */
export function syncsServices(fields: Fields): boolean {
  const services = 'endpointSyncer.services';
  return [fields.text(services), fields.text(`${services}.mode`)].includes('sync');
}

/** The keys of `sync.toHost` whose patches this program applies. */
export function patchedKeys(fields: Fields): readonly SyncedKey[] {
  return syncsServices(fields) ? SYNCED_KEYS : SHARED_KEYS;
}

/** More than one host namespace receives objects. */
export function isMultiNamespace(fields: Fields): boolean {
  return (
    fields.isOn('sync.toHost.namespaces.enabled') || fields.isOn('experimental.multiNamespaceMode.enabled')
  );
}
