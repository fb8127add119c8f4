/** Media types of patches. */

import type { PatchKind } from '../objects/resource-definition.ts';

export const PATCH_MEDIA: Readonly<Record<PatchKind, string>> = {
  apply: 'application/apply-patch+yaml',
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
};
