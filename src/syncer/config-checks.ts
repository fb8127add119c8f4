/** The checks of the sync engine that a configuration has to pass: patches, protected paths, namespace mappings. */

import type { ConfigChecks } from '../config/config.ts';
import { PATCHED_KINDS } from './kinds/synced-kinds.ts';
import { checkPatch, pathSegments } from './patch/check-patch.ts';
import { isProtected } from './patch/protect.ts';
import { checkNamespaceMappings } from './translate/namespace-mappings.ts';

export const CONFIG_CHECKS: ConfigChecks = {
  checkPatch: (patch, list) =>
    checkPatch(patch, PATCHED_KINDS.find(({ configKey }) => configKey === list)?.fields),
  pathSegments,
  isProtected,
  checkNamespaceMappings,
};
