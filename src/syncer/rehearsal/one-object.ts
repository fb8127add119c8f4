/** Only the patches, on any one object: without its other half, its Service and the merge. */

import { systemClock } from '../../base/clock.ts';
import { textAt, type JsonObject } from '../../base/json.ts';
import { createLogger } from '../../base/logger.ts';
import { createSandbox } from '../../expressions/sandbox.ts';
import type { ObjectContext } from '../../expressions/types.ts';
import { asObject, isOfKind } from '../../kube/object.ts';
import type { Config } from '../config/config.ts';
import { endpointsKind } from '../kinds/endpoints.ts';
import { patchedKinds, validationOf } from '../kinds/synced-kinds.ts';
import { compilePatches } from '../patch/compile.ts';
import type { PatchConfig } from '../patch/patch-schema.ts';
import { createPatchPipeline } from '../patch/pipeline.ts';
import type { Direction, PatchedObject } from '../patch/types.ts';
import { byNewestVersion } from '../patch/validate-object.ts';
import { OBJECT_NAMESPACE } from '../translate/bookkeeping.ts';
import type { NameTranslator } from '../translate/types.ts';
import { pipelineOptions, sandboxSettings } from '../translation.ts';

interface PatchSettings {
  readonly config: Config;
  /** Undefined: those that the configuration has for the kind of the object, and for other kinds those of Endpoints. */
  readonly patches: readonly PatchConfig[] | undefined;
  readonly direction: Direction;
  readonly context: ObjectContext;
  /** The virtual namespace of an object without one. */
  readonly namespace: string | undefined;
}

/** The result is that of all patches: rejects with a `PatchError` of the first that fails. */
export async function patchObject(
  object: JsonObject,
  { config, patches: given, direction, context, namespace = 'default' }: PatchSettings,
): Promise<PatchedObject> {
  const kind = patchedKinds(config).find(({ resource }) => isOfKind(asObject(object), resource))?.key;
  const patches = given ?? config.sync[kind ?? 'endpoints'].patches;
  const compiled = compilePatches(patches, 0, config.patches.missingPaths);
  await using sandbox = await createSandbox({
    ...sandboxSettings(config),
    programs: compiled.programs,
    clock: systemClock,
    logger: await createLogger({ level: 'error', format: 'json' }),
  });
  const options = pipelineOptions(config, endpointsKind, {
    compiled,
    evaluator: sandbox,
    lookup: () => undefined,
  });
  const pipeline = createPatchPipeline({
    ...options,
    // Only the patches run, so Pod references have not been translated before.
    references: { ...options.references, skipPodTargetRefs: false },
    onError: 'object',
    validate: byNewestVersion(validationOf(object, config)),
  });
  const objectNamespace =
    (direction === 'toHost'
      ? namespaceOf(object)
      : virtualNamespace(object, context.virtualObject, options.references.names)) ?? namespace;
  // Awaited here, because the sandbox is closed on return.
  const patched = await pipeline.apply(direction, object, { ...context, objectNamespace });
  const [unresolved] = patched.unresolved;
  if (unresolved !== undefined) throw unresolved.error;
  return patched;
}

/** The virtual namespace of a host object, from its annotations, else from its host namespace. */
function virtualNamespace(
  object: JsonObject,
  virtualObject: JsonObject | null,
  names: NameTranslator,
): string | undefined {
  const recorded = textAt(object, 'metadata', 'annotations', OBJECT_NAMESPACE);
  const host = namespaceOf(object);
  return namespaceOf(virtualObject) ?? (recorded || (host && names.namespaceToVirtual(host)));
}

function namespaceOf(object: JsonObject | null): string | undefined {
  return textAt(object, 'metadata', 'namespace') || undefined;
}
