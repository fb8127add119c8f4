/** A forge of Endpoints for the patches of a test, on a host without Services of others, so that no copy is refused. */

import { invariant } from '../../../src/base/errors.ts';
import { endpointsKind } from '../../../src/syncer/kinds/endpoints.ts';
import type { PatchPipeline } from '../../../src/syncer/patch/types.ts';
import { CopyForge, isRefused, type RefusedCopy } from '../../../src/syncer/reconcile/copy.ts';
import { translators } from '../translate/setup.ts';

export function ownForge(pipeline: PatchPipeline) {
  const { names, labels } = translators(undefined, { vcluster: 'vc', hostNamespace: 'ns' });
  const kept = { owner: { current: undefined }, foreignService: () => undefined };
  const forge = new CopyForge({ kind: endpointsKind, names, labels, pipeline, ...kept });
  return {
    fresh: async (...of: Parameters<CopyForge['fresh']>) => accepted(await forge.fresh(...of)),
    merged: async (...of: Parameters<CopyForge['merged']>) => accepted(await forge.merged(...of)),
  };
}

function accepted<T extends object>(copy: T | RefusedCopy): T {
  invariant(!isRefused(copy), 'no copy is refused');
  return copy;
}
