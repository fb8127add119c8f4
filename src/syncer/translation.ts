/** Names, labels and patches of one configuration, put together for Endpoints. */

import type { Config } from '../config/types.ts';
import type { SyncedKind } from './kinds/kind.ts';
import type { CompiledPatches } from './patch/compile.ts';
import { createPatchPipeline, type PipelineOptions } from './patch/pipeline.ts';
import type { ReferenceRules } from './patch/modes/reference-translation.ts';
import type { PatchPipeline, ReferenceLookup } from './patch/types.ts';
import type { SandboxOptions } from './sandbox/sandbox.ts';
import type { Evaluator } from './sandbox/types.ts';
import { createLabelTranslator } from './translate/metadata/labels.ts';
import { createNameTranslator } from './translate/names/name-translator.ts';
import type { LabelTranslator, NameTranslator } from './translate/types.ts';
import { kindPolicy } from './references/kinds/referenced-kind.ts';

export interface TranslationOptions {
  readonly config: Config;
  readonly kind: SyncedKind;
  readonly compiled: CompiledPatches;
  /** Undefined where no patch has an expression. */
  readonly evaluator: Evaluator | undefined;
  /** Finds referenced objects that go by another name than the rule gives. */
  readonly lookup: ReferenceLookup;
  /** Opens the kinds that only data lead to, before `lookup` is asked about them. */
  readonly prepare?: ReferenceRules['prepare'];
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
    referenceNaming: config.references.naming,
  });
  return { names, labels: createLabelTranslator(config.name, sync.namespaces) };
}

export function createTranslation(options: TranslationOptions): Translation {
  return {
    ...createTranslators(options.config),
    pipeline: createPatchPipeline(pipelineOptions(options)),
  };
}

/** The options of a sandbox that the configuration determines. */
export function sandboxSettings(
  config: Config,
): Required<Pick<SandboxOptions, 'vcluster' | 'namespaces' | 'limits'>> {
  return {
    vcluster: { name: config.name, namespace: config.host.namespace, config: config.vclusterConfig },
    namespaces: config.sync.namespaces,
    limits: config.sandbox,
  };
}

/** The options of a translation's patch pipeline; a trace of its patches needs the same. */
export function pipelineOptions({
  config,
  kind,
  compiled,
  evaluator,
  lookup,
  prepare,
}: TranslationOptions): PipelineOptions {
  const { names, labels } = createTranslators(config);
  const policy = kindPolicy(config.sync);
  const isKindAllowed = (apiVersion: string, kind: string): boolean => policy.isAllowed(apiVersion, kind);
  return {
    compiled,
    evaluator,
    references: { names, lookup, isKindAllowed, skipPodTargetRefs: true, ...(prepare && { prepare }) },
    labels,
    validate: kind.validate,
    contentMembers: kind.content.members,
  };
}
