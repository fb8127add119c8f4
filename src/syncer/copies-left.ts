/** Reports copies of kinds that are no longer synced. They stay on the host until a user removes them. */

import type { Resource } from '../kube/object.ts';
import type { GenerationOptions } from './generation.ts';
import { SYNCABLE_RESOURCES, syncedKinds } from './kinds/synced-kinds.ts';
import { listMarked } from './references/orphans/marked-objects.ts';
import { LAST_SYNCED } from './translate/metadata/bookkeeping.ts';
import { namedVirtual } from './translate/metadata/ownership.ts';
import type { NameTranslator } from './translate/types.ts';
import { createTranslators } from './translation.ts';

const CLEANUP = 'endpoint-syncer cleanup --config FILE';

type CopiesOptions = Pick<GenerationOptions, 'config' | 'clients' | 'logger'>;

/** Logs the number of copies on the host for each kind that is not synced. */
export async function reportCopiesLeft(options: CopiesOptions): Promise<void> {
  const { config, logger } = options;
  const { names } = createTranslators(config);
  const synced = syncedKinds(config).map(({ kind }) => kind.resource.plural);
  for (const resource of SYNCABLE_RESOURCES.filter(({ plural }) => !synced.includes(plural))) {
    try {
      const copies = await countCopies(resource, names, options);
      const fields = { kind: resource.kind, copies, command: CLEANUP };
      if (copies > 0) logger.warn(fields, 'copies are left on the host; the command removes them');
    } catch (error) {
      // The right to list a kind that is not synced is optional.
      const why = error instanceof Error ? error.message : String(error);
      logger.debug(
        { kind: resource.kind, error: why },
        'copies of a kind that is not synced cannot be listed',
      );
    }
  }
}

async function countCopies(
  resource: Resource,
  names: NameTranslator,
  { clients, config }: CopiesOptions,
): Promise<number> {
  const namespace = config.sync.namespaces.kind === 'single' ? config.host.namespace : undefined;
  const marked = await listMarked(clients.host, resource, { vcluster: config.name, namespace });
  // Slices that the host mirrors from a copy have its annotations, but name another kind.
  return marked.filter(
    (object) =>
      object.metadata.annotations?.[LAST_SYNCED] !== undefined &&
      namedVirtual(object, resource, names) !== undefined,
  ).length;
}
