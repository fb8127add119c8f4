/** Joins what the configuration checks to the rooms that know: patches and names. */

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
