/** The copies of one or several virtual clusters on the host, by what the copies say of themselves. */

import { TerminalError } from '../base/errors.ts';
import { CachingDiscovery } from '../kube/discovery.ts';
import type { KubeObject, Resource } from '../kube/object.ts';
import type { ClusterClient } from '../kube/types.ts';
import type { Config } from './config/config.ts';
import { SYNCABLE_RESOURCES } from './kinds/synced-kinds.ts';
import { isOptedOut } from './reconcile/decide.ts';
import { listMarked } from './reconcile/marked-copies.ts';
import { partsOfKind } from './references/referenced-kind.ts';
import { namedVirtual } from './translate/bookkeeping.ts';
import { MANAGED_BY_LABEL } from './translate/labels.ts';
import { recordedKinds, recordOf, type KindId } from './translate/last-synced.ts';
import { createTranslators } from './translation.ts';

interface RecordedOptions {
  readonly client: ClusterClient;
  readonly namespace: string;
  /** Of the virtual clusters. */
  readonly configs: readonly Config[];
  readonly signal: AbortSignal;
}

interface RecordedCopy {
  readonly resource: Resource;
  readonly copy: KubeObject;
  /** Of its virtual cluster. */
  readonly config: Config;
}

/** Of the records of copies, which a user may write: more than any virtual cluster imports objects of. */
const KINDS_MAX = 64;

/** Kind by kind, each listed when it is its turn: first those that are synced, then those of which objects were imported for their copies. */
export async function* recordedCopies(options: RecordedOptions): AsyncGenerator<RecordedCopy> {
  const imported = new Set<KindId>();
  const copiesOfKind = async (resource: Resource): Promise<readonly RecordedCopy[]> => {
    const found = await copiesOf(resource, options);
    for (const id of found.flatMap(({ copy, config }) => recordedKinds(copy, config.name)))
      if (imported.size < KINDS_MAX) imported.add(id);
    return found;
  };
  for (const resource of SYNCABLE_RESOURCES) yield* await copiesOfKind(resource);
  const discovery = new CachingDiscovery(options.client);
  for (const id of imported) {
    const resource = await servedResource(id, discovery, options);
    if (resource !== undefined) yield* await copiesOfKind(resource);
  }
}

/** Undefined if it is not served any more, so nothing of it is left. */
async function servedResource(
  id: KindId,
  discovery: CachingDiscovery,
  { signal }: RecordedOptions,
): Promise<Resource | undefined> {
  const { apiVersion, kind } = partsOfKind(id);
  try {
    return await discovery.resolveNamespaced(apiVersion, kind, { signal });
  } catch (error) {
    if (!(error instanceof TerminalError)) throw error;
    return undefined;
  }
}

/** One list for all virtual clusters. With our record: others are vCluster's own. */
async function copiesOf(
  resource: Resource,
  { client, namespace, configs, signal }: RecordedOptions,
): Promise<readonly RecordedCopy[]> {
  const byName = new Map(
    configs.map((config) => [config.name, { config, names: createTranslators(config).names }]),
  );
  const options = { vcluster: [...byName.keys()], namespaces: [namespace], signal };
  return (await listMarked(client, resource, options)).flatMap((copy) => {
    const of = byName.get(copy.metadata.labels?.[MANAGED_BY_LABEL] ?? '');
    return of !== undefined &&
      recordOf(copy) !== undefined &&
      !isOptedOut(copy) &&
      namedVirtual(copy, resource, of.names) !== undefined
      ? [{ resource, copy, config: of.config }]
      : [];
  });
}
