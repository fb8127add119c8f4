/** Reports copies of kinds that are not synced. They stay on the host as they are, until a user enables their sync or removes them. */

import { messageOf } from '../base/errors.ts';
import { PATCHED_KEYS } from '../config/layers.ts';
import { ENDPOINT_SLICES, type KubeObject, type Resource } from '../kube/object.ts';
import type { GenerationOptions } from './generation.ts';
import { exclusion } from './kinds/endpoint-slices.ts';
import { PATCHED_KINDS, SYNCABLE_RESOURCES, syncedKinds } from './kinds/synced-kinds.ts';
import { listMarked } from './references/orphans.ts';
import { namedVirtual } from './translate/ownership.ts';
import { hostNamespaces } from './translate/namespace-mappings.ts';
import { createTranslators } from './translation.ts';
import { recordOf } from './translate/last-synced.ts';

const CLEANUP = 'endpoint-syncer cleanup --unused --config FILE';

type CopiesOptions = Pick<GenerationOptions, 'config' | 'clients' | 'logger'>;

/** Logs the number of copies on the host for each kind that neither this program nor, by its values, vCluster syncs. */
export async function reportCopiesLeft(options: CopiesOptions): Promise<void> {
  const { config, logger } = options;
  const synced = syncedKinds(config).map(({ kind }) => kind.resource.plural);
  for (const resource of SYNCABLE_RESOURCES.filter(({ plural }) => !synced.includes(plural))) {
    const { kind } = resource;
    // Copies of other kinds without our record are vCluster's to keep.
    const key = PATCHED_KEYS.find((shared) =>
      PATCHED_KINDS.some((patched) => patched.resource === resource && patched.configKey === shared),
    );
    if (key !== undefined && config.sync.syncedByVcluster?.includes(key) === true) continue;
    try {
      const copies = await copiesOf(resource, options);
      const own = copies.filter((object) => recordOf(object) !== undefined);
      if (own.length > 0) {
        const fields = { kind, copies: own.length, command: CLEANUP };
        logger.warn(fields, 'copies are left on the host; the command removes them');
      }
      const others = copies.filter(
        (object) => !own.includes(object) && !isKeptByController(object, resource),
      );
      if (key !== undefined && others.length > 0) {
        const fields = { kind, copies: others.length, setting: `sync.toHost.${key}.enabled` };
        logger.warn(
          fields,
          'copies of another syncer are on the host, and this configuration does not update them: unless vCluster does, set the setting to true',
        );
      }
    } catch (error) {
      // The right to list a kind that is not synced is optional.
      const why = messageOf(error);
      logger.debug({ kind, error: why }, 'copies of a kind that is not synced cannot be listed');
    }
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

/** The host's own controllers update a slice that they have adopted. */
function isKeptByController(object: KubeObject, { plural }: Resource): boolean {
  return plural === ENDPOINT_SLICES.plural && exclusion(object, { isEndpointsSynced: true }) !== undefined;
}
