/** Lists the metadata of all objects with the marker label of one virtual cluster, page by page. */

import type { KubeObject, Resource } from '../../../kube/object.ts';
import type { ClusterClient } from '../../../kube/types.ts';
import { MANAGED_BY_LABEL } from '../../translate/metadata/labels.ts';

const PAGE_SIZE = 500;

/** `namespaces` undefined: every namespace. */
export async function listMarked(
  client: ClusterClient,
  resource: Resource,
  { vcluster, namespaces }: { readonly vcluster: string; readonly namespaces: readonly string[] | undefined },
): Promise<readonly KubeObject[]> {
  const found: KubeObject[] = [];
  for (const namespace of namespaces ?? [undefined])
    found.push(...(await listMarkedIn(client, resource, vcluster, namespace)));
  return found;
}

async function listMarkedIn(
  client: ClusterClient,
  resource: Resource,
  vcluster: string,
  namespace: string | undefined,
): Promise<readonly KubeObject[]> {
  const found: KubeObject[] = [];
  let continueToken = '';
  do {
    const page = await client.list(resource, {
      labelSelector: `${MANAGED_BY_LABEL}=${vcluster}`,
      isMetadataOnly: true,
      limit: PAGE_SIZE,
      continueToken,
      ...(namespace === undefined ? {} : { namespace }),
    });
    found.push(...page.items);
    continueToken = page.continueToken;
  } while (continueToken !== '');
  return found;
}
