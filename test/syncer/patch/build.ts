/** A pipeline over the trusted evaluator, with the real names and labels. */

import { compilePatches } from '../../../src/syncer/patch/compile.ts';
import { createPatchPipeline, type PipelineOptions } from '../../../src/syncer/patch/pipeline.ts';
import type { PatchContext, PatchPipeline } from '../../../src/syncer/patch/types.ts';
import type { NamespaceMode } from '../../../src/syncer/translate/types.ts';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { createLabelTranslator } from '../../../src/syncer/translate/labels.ts';
import { isCopiedByKind } from '../../../src/syncer/kinds/synced-kinds.ts';
import { createNameTranslator } from '../../../src/syncer/translate/names.ts';
import { TrustedEvaluator } from './trusted-evaluator.ts';

export interface BuildOptions extends Partial<Pick<PipelineOptions, 'onError' | 'validate'>> {
  readonly vcluster?: string;
  readonly hostNamespace?: string;
  readonly mode?: NamespaceMode;
  readonly naming?: 'short' | 'long';
  readonly answers?: 'immediately' | 'later';
  readonly references?: Partial<PipelineOptions['references']>;
  readonly missingPaths?: 'skip' | 'create';
}

export interface Built {
  readonly pipeline: PatchPipeline;
  readonly evaluator: TrustedEvaluator;
}

export function build(patches: readonly PatchConfig[], options: BuildOptions = {}): Built {
  const all = pipelineOptions(patches, options);
  return { pipeline: createPatchPipeline(all), evaluator: all.evaluator };
}

export function pipelineOptions(
  patches: readonly PatchConfig[],
  options: BuildOptions = {},
): PipelineOptions & Pick<Built, 'evaluator'> {
  const { vcluster = 'vc', hostNamespace = 'ns', mode = { kind: 'single' }, naming = 'short' } = options;
  const compiled = compilePatches(patches, 0, options.missingPaths);
  const names = createNameTranslator({
    vcluster,
    hostNamespace,
    mode,
    referenceNaming: naming,
    isCopiedByKind,
  });
  return {
    compiled,
    contentMembers: ['subsets'],
    vcluster: { name: vcluster, namespace: hostNamespace, config: {} },
    evaluator: new TrustedEvaluator(
      compiled.programs,
      { name: vcluster, namespace: hostNamespace, config: {} },
      options.answers ?? 'later',
    ),
    references: {
      names,
      lookup: () => undefined,
      isKindAllowed: () => true,
      skipPodTargetRefs: false,
      ...options.references,
    },
    labels: createLabelTranslator(vcluster, mode),
    validate: options.validate,
    onError: options.onError ?? 'object',
  };
}

export function context(overrides: Partial<PatchContext> = {}): PatchContext {
  return { hostObject: null, virtualObject: null, objectNamespace: 'default', ...overrides };
}
