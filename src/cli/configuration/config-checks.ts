/** The checks of the sync engine that the configuration uses: patches, bookkeeping keys, namespace mappings. */

import type { ConfigChecks } from '../../config/types.ts';
import { FIELDS_BY_CONFIG_KEY } from '../../syncer/kinds/synced-kinds.ts';
import { checkPatch, pathSegments } from '../../syncer/patch/check-patch.ts';
import { isBookkeepingAnnotation, isBookkeepingLabel } from '../../syncer/translate/metadata/bookkeeping.ts';
import { checkNamespaceMappings } from '../../syncer/translate/names/namespace-mapping-checks.ts';

export const CONFIG_CHECKS: ConfigChecks = {
  checkPatch: (patch, list) =>
    checkPatch(patch, list === undefined ? undefined : FIELDS_BY_CONFIG_KEY.get(list)),
  pathSegments,
  isBookkeepingKey: (map, key) =>
    map === 'annotations' ? isBookkeepingAnnotation(key) : isBookkeepingLabel(key),
  checkNamespaceMappings,
};
