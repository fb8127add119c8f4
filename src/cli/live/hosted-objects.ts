/** What commands read of vClusters on the host, and the rights that this needs. */

import { TerminalError } from '../../base/errors.ts';
import { textAt, type JsonObject } from '../../base/json.ts';
import { readDocument } from '../../config/document.ts';
import type { ConfigText } from '../../config/layers.ts';
import { DEPLOYMENTS, STATEFUL_SETS, VALUES_KEY, VCLUSTER_LABEL } from '../../fleet/vcluster.ts';
import { asJson, CONFIG_MAPS, objectKey, type KubeObject } from '../../kube/object.ts';
import { isForbidden } from '../../kube/status-error.ts';
import type { ClusterClient } from '../../kube/types.ts';
import { listAll } from './snapshot.ts';

/** A file in a ConfigMap. */
export interface ConfigFile extends ConfigText {
  readonly value: JsonObject;
}

export async function configFilesIn(host: ClusterClient, namespace: string): Promise<readonly ConfigFile[]> {
  const listed = await listAll(host, CONFIG_MAPS, [namespace]);
  return listed.flatMap((object) => {
    const text = textAt(asJson(object), 'data', VALUES_KEY);
    const file = `ConfigMap ${objectKey(object)}`;
    return text === '' ? [] : [{ text, file, value: readDocument(file, text).value }];
  });
}

/** The StatefulSets and Deployments of vClusters; '' stands for all namespaces. `otherwise`: what to do without the rights. */
export async function vclusterWorkloads(
  host: ClusterClient,
  namespace: string,
  otherwise: string,
): Promise<KubeObject[]> {
  const where = namespace === '' ? 'all host namespaces' : `the host namespace "${namespace}"`;
  const lists = [STATEFUL_SETS, DEPLOYMENTS].map((resource) =>
    allowed(listAll(host, resource, [namespace], VCLUSTER_LABEL), {
      rights: `list ${resource.plural} in ${where}`,
      otherwise,
    }),
  );
  return (await Promise.all(lists)).flat();
}

/** `rights`: what `request` needs. `otherwise`: what to do without. */
export async function allowed<T>(
  request: Promise<T>,
  { rights, otherwise }: { readonly rights: string; readonly otherwise: string },
): Promise<T> {
  try {
    return await request;
  } catch (error) {
    if (!(error instanceof TerminalError && isForbidden(error.cause))) throw error;
    throw new TerminalError(
      `${error.cause.message}: this needs the rights to ${rights}; without them, ${otherwise}`,
      { cause: error.cause },
    );
  }
}
