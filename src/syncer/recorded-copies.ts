/** The copies of one or several virtual clusters on the host, by what the copies say of themselves. */

import type { KubeObject, Resource } from '../kube/object.ts';
import type { ClusterClient } from '../kube/types.ts';
import type { Config } from './config/config.ts';
import { isOptedOut } from './reconcile/decide.ts';
import { listMarked } from './reconcile/marked-copies.ts';
import { partsOfKind, type KindParts } from './references/referenced-kind.ts';
import { namedVirtual } from './translate/bookkeeping.ts';
import { MANAGED_BY_LABEL } from './translate/labels.ts';
import { recordedKinds, recordOf } from './translate/last-synced.ts';
import { createTranslators } from './translation.ts';

interface RecordedOptions {
  readonly namespace: string;
  /** Of the virtual clusters. */
  readonly configs: readonly Config[];
  readonly signal: AbortSignal;
}

/** Each with the configuration that it belongs to; one list for all of them. With our record: others are vCluster's own. */
export async function listRecordedCopies(
  client: ClusterClient,
  resource: Resource,
  { namespace, configs, signal }: RecordedOptions,
): Promise<readonly (readonly [KubeObject, Config])[]> {
  const byName = new Map(
    configs.map((config) => [config.name, { config, names: createTranslators(config).names }]),
  );
  const options = { vcluster: [...byName.keys()], namespaces: [namespace], signal };
  return (await listMarked(client, resource, options)).flatMap((object) => {
    const of = byName.get(object.metadata.labels?.[MANAGED_BY_LABEL] ?? '');
    return of !== undefined &&
      recordOf(object) !== undefined &&
      !isOptedOut(object) &&
      namedVirtual(object, resource, of.names) !== undefined
      ? [[object, of.config] as const]
      : [];
  });
}

export interface ImportedKind extends KindParts {
  readonly id: string;
}

/** Of the objects that were imported for a copy. */
export function importedKinds(copy: KubeObject): readonly ImportedKind[] {
  return recordedKinds(copy).map((id) => ({ id, ...partsOfKind(id) }));
}
