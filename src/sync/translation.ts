/** Names, labels and patches of one configuration, put together for Endpoints. */

import type { Config } from '../config/types.ts';
import type { CompiledPatches } from '../patch/compile.ts';
import { createPatchPipeline } from '../patch/pipeline.ts';
import type { PatchPipeline, ReferenceLookup } from '../patch/types.ts';
import { validateEndpoints } from '../patch/validate-endpoints.ts';
import type { Evaluator } from '../sandbox/types.ts';
import { createLabelTranslator } from '../translate/labels.ts';
import { createNameTranslator } from '../translate/name-translator.ts';
import type { LabelTranslator, NameTranslator } from '../translate/types.ts';
import { kindPolicy } from './reference-kinds.ts';

export interface TranslationOptions {
  readonly config: Config;
  readonly compiled: CompiledPatches;
  /** Undefined where no patch has an expression. */
  readonly evaluator: Evaluator | undefined;
  /** Finds referenced objects that go by another name than the rule gives. */
  readonly lookup: ReferenceLookup;
}

export interface Translation {
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
  readonly pipeline: PatchPipeline;
}

export function createTranslators(config: Config): Pick<Translation, 'names' | 'labels'> {
  const { sync, host } = config;
  const names = createNameTranslator({
    vcluster: config.name,
    hostNamespace: host.namespace,
    mode: sync.namespaces,
    referenceNaming: config.referenceNaming,
  });
  return { names, labels: createLabelTranslator(config.name, sync.namespaces) };
}

export function createTranslation({ config, compiled, evaluator, lookup }: TranslationOptions): Translation {
  const { sync } = config;
  const { names, labels } = createTranslators(config);
  const policy = kindPolicy(sync);
  const isKindAllowed = (apiVersion: string, kind: string): boolean => policy.isAllowed(apiVersion, kind);
  const references = { names, lookup, isKindAllowed, skipPodTargetRefs: true };
  const pipeline = createPatchPipeline({
    compiled,
    evaluator,
    references,
    labels,
    validate: validateEndpoints,
  });
  return { names, labels, pipeline };
}
