/** Reports copies of kinds that are not synced. They stay on the host as they are, until a user enables their sync or removes them. */

import { messageOf } from '../base/errors.ts';
import type { KubeObject, Resource } from '../kube/object.ts';
import type { SyncableKind } from './kinds/kind.ts';
import { isSharedKey, SYNCABLE_KINDS, syncedKinds } from './kinds/synced-kinds.ts';
import type { SyncEnvironment } from './reconcile/environment.ts';
import { CLEANUP, listMarked } from './reconcile/marked-copies.ts';
import { namedVirtual } from './translate/bookkeeping.ts';
import { hostNamespaces } from './translate/namespace-mappings.ts';
import { createTranslators } from './translation.ts';
import { recordOf } from './translate/last-synced.ts';

type CopiesOptions = Pick<SyncEnvironment, 'config' | 'clients'>;

export interface CopiesLeft {
  readonly kind: string;
  /** With our record. */
  readonly own: number;
  readonly others: number;
  /** With it, this program updates them; undefined: they are vCluster's to keep. */
  readonly setting: string | undefined;
}

const NOT_UPDATED =
  'copies of another syncer are on the host, and this configuration does not update them: unless vCluster does, set the setting to true';

export async function reportCopiesLeft(
  options: CopiesOptions & Pick<SyncEnvironment, 'logger'>,
): Promise<void> {
  const { logger } = options;
  const left = await copiesLeft(options, (kind, error) => {
    const why = messageOf(error);
    logger.debug({ kind, error: why }, 'copies of a kind that is not synced cannot be listed');
  });
  for (const { kind, own, others, setting } of left) {
    if (own > 0)
      logger.warn(
        { kind, copies: own, command: CLEANUP },
        'copies are left on the host; the command removes them',
      );
    if (others > 0) logger.warn({ kind, copies: others, setting }, NOT_UPDATED);
  }
}

/** `failed`: the right to list a kind that is not synced is optional. */
export async function copiesLeft(
  options: CopiesOptions,
  failed: (kind: string, error: unknown) => void,
): Promise<readonly CopiesLeft[]> {
  const { config } = options;
  const synced = syncedKinds(config).map(({ kind }) => kind.resource.plural);
  const others = SYNCABLE_KINDS.filter(({ resource }) => !synced.includes(resource.plural));
  return (await Promise.all(others.map((kind) => leftOf(kind, options, failed)))).flat();
}

async function leftOf(
  { key, resource, isAdopted }: SyncableKind,
  options: CopiesOptions,
  failed: (kind: string, error: unknown) => void,
): Promise<readonly CopiesLeft[]> {
  const { kind } = resource;
  if (options.config.sync.syncedByVcluster?.includes(key) === true) return [];
  try {
    const copies = await copiesOf(resource, options);
    const own = copies.filter((object) => recordOf(object) !== undefined);
    const others = copies.filter((object) => !own.includes(object) && isAdopted?.(object) !== true);
    // Copies of other kinds without our record are vCluster's to keep.
    const left = isSharedKey(key)
      ? { others: others.length, setting: `sync.toHost.${key}.enabled` }
      : { others: 0, setting: undefined };
    return [{ kind, own: own.length, ...left }];
  } catch (error) {
    failed(kind, error);
    return [];
  }
}

async function copiesOf(
  resource: Resource,
  { clients, config }: CopiesOptions,
): Promise<readonly KubeObject[]> {
  const { names } = createTranslators(config);
  const namespaces = hostNamespaces(config);
  const marked = await listMarked(clients.host, resource, { vcluster: config.name, namespaces });
  // Slices that the host mirrors from a copy have its annotations, but name another kind.
  return marked.filter((object) => namedVirtual(object, resource, names) !== undefined);
}
