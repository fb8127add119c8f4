/** What one configuration makes of names, labels, patches and the settings of their sandbox, for all kinds. */

import type { JsonObject } from '../base/json.ts';
import { mergeConfig } from '../config-file/merge.ts';
import { Fields } from '../config-file/finding.ts';
import type { Config } from './config/config.ts';
import type { SyncedKind } from './kinds/kind.ts';
import { isCopiedByKind, SHARED_KEYS } from './kinds/synced-kinds.ts';
import { namingRules } from './translate/naming-rules.ts';
import type { PipelineOptions } from './patch/pipeline.ts';
import type { ReferenceRules } from './patch/reference-translation.ts';
import type { SandboxOptions } from '../expressions/sandbox.ts';
import { createLabelTranslator } from './translate/labels.ts';
import { createNameTranslator } from './translate/names.ts';
import type { Translators } from './translate/forge.ts';
import { kindPolicy } from './references/referenced-kind.ts';

export function createTranslators(config: Config): Translators {
  const { sync, host } = config;
  const names = createNameTranslator({
    vcluster: config.name,
    hostNamespace: host.namespace,
    mode: sync.namespaces,
    referenceNaming: config.references.naming,
    // Without vCluster, which copies the Services and Pods of a virtual cluster.
    isCopiedByKind,
    arePodsCopied: config.services.mode !== 'sync',
  });
  return { names, labels: createLabelTranslator(config.name, sync.namespaces, config.metadata) };
}

interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  /** True for the default, vCluster's Service, which owns vCluster's own copies: without it, copies have no owner. */
  readonly isOptional: boolean;
}

export function ownerOf({ owner, name }: Pick<Config, 'owner' | 'name'>): Owner | undefined {
  const isOptional = owner.name === '';
  return owner.kind === '' ? undefined : { ...owner, name: isOptional ? name : owner.name, isOptional };
}

export function sandboxSettings(
  config: Config,
): Required<Pick<SandboxOptions, 'vcluster' | 'names' | 'limits' | 'localEvaluation'>> {
  const { name, host, sync } = config;
  const vcluster = { name, namespace: host.namespace, config: loadedByVcluster(config) };
  return {
    vcluster,
    names: namingRules(vcluster, sync.namespaces),
    limits: {
      expressionTimeoutMs: config.sandbox.expressionTimeout,
      batchTimeoutMs: config.sandbox.batchTimeout,
      memoryBytes: config.sandbox.memory,
      memoBytes: config.sandbox.memoBytes,
    },
    localEvaluation: config.sandbox.localEvaluation,
  };
}

/** As vCluster's own loader gives it: it names the ServiceAccount of workloads, and with namespace mappings it syncs all Secrets and ConfigMaps. */
function loadedByVcluster({ name, sync, vclusterValues }: Config): JsonObject {
  const account = new Fields(vclusterValues).text('controlPlane.advanced.workloadServiceAccount.name');
  const { syncedByVcluster: theirs } = sync;
  const isOn = (key: string): JsonObject => (theirs === undefined ? {} : { enabled: theirs.includes(key) });
  const kinds = Object.fromEntries(SHARED_KEYS.map((key) => [key, isOn(key)]));
  const all =
    sync.namespaces.kind === 'mappings' ? { secrets: { all: true }, configMaps: { all: true } } : {};
  return mergeConfig(vclusterValues, {
    controlPlane: { advanced: { workloadServiceAccount: { name: account || `vc-workload-${name}` } } },
    sync: { toHost: { ...kinds, ...all } },
  });
}

/** The options of a translation's patch pipeline; a trace of its patches needs the same. */
export function pipelineOptions(
  config: Config,
  kind: SyncedKind,
  {
    compiled,
    evaluator,
    lookup,
    prepare,
  }: Pick<PipelineOptions, 'compiled' | 'evaluator'> & Pick<ReferenceRules, 'lookup' | 'prepare'>,
): PipelineOptions {
  const { names, labels } = createTranslators(config);
  const policy = kindPolicy(config.sync);
  const isKindAllowed = (apiVersion: string, kindName: string): boolean =>
    policy.isAllowed(apiVersion, kindName);
  return {
    compiled,
    evaluator,
    references: { names, lookup, isKindAllowed, skipPodTargetRefs: true, ...(prepare && { prepare }) },
    labels,
    validate: kind.validate,
    contentMembers: kind.content.members,
    vcluster: sandboxSettings(config).vcluster,
    onError: config.patches.onError,
  };
}
