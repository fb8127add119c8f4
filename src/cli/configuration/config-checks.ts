/** The checks of the sync engine that the configuration uses: patches, bookkeeping keys, namespace mappings. */

import type { ConfigChecks } from '../../config/types.ts';
import { PATCHED_KINDS } from '../../syncer/kinds/synced-kinds.ts';
import { checkPatch, pathSegments } from '../../syncer/patch/check-patch.ts';
import { isBookkeepingAnnotation, isBookkeepingLabel } from '../../syncer/translate/metadata/bookkeeping.ts';
import { checkNamespaceMappings } from '../../syncer/translate/names/namespace-mapping-checks.ts';

export const CONFIG_CHECKS: ConfigChecks = {
  checkPatch: (patch, list) =>
    checkPatch(patch, PATCHED_KINDS.find(({ configKey }) => configKey === list)?.fields),
  pathSegments,
  isBookkeepingKey: (map, key) =>
    map === 'annotations' ? isBookkeepingAnnotation(key) : isBookkeepingLabel(key),
  checkNamespaceMappings,
};
