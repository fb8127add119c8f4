/** Checks of patches and names for the configuration loader, which may not import the sync engine. */

import type { ConfigChecks } from '../../config/types.ts';
import { checkPatch, pathSegments } from '../../syncer/patch/checks/check-patch.ts';
import { isBookkeepingAnnotation, isBookkeepingLabel } from '../../syncer/translate/metadata/bookkeeping.ts';
import { checkNamespaceMappings } from '../../syncer/translate/names/namespace-mapping-checks.ts';

export const CONFIG_CHECKS: ConfigChecks = {
  checkPatch,
  pathSegments,
  isBookkeepingKey: (map, key) =>
    map === 'annotations' ? isBookkeepingAnnotation(key) : isBookkeepingLabel(key),
  checkNamespaceMappings,
};
