/** Requests of a command that reads a cluster once: whole lists, and failures that the user can act on. */

import { TerminalError } from '../../base/errors.ts';
import { listPages } from '../../kube/list-pages.ts';
import { apiVersionOf, type KubeObject, type Resource } from '../../kube/object.ts';
import { isAnonymous, StatusError } from '../../kube/status-error.ts';
import { TransportError, type ClusterClient, type ClusterName } from '../../kube/types.ts';

/** Every object of one kind in these namespaces ('' means all), with its type, which items of a list lack. */
export async function listAll(
  client: ClusterClient,
  resource: Resource,
  namespaces: readonly string[],
  labelSelector?: string,
): Promise<KubeObject[]> {
  const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
  const typed = (object: KubeObject): KubeObject => ({ ...object, ...type });
  const found: KubeObject[] = [];
  for (const namespace of namespaces) {
    const options = {
      ...(namespace === '' ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
    };
    const listed = await reaching(client.cluster, () => listPages(client, resource, options, typed));
    for (const object of listed) found.push(object); // more than a call takes as arguments
  }
  return found;
}

/** A cluster does not respond. */
export class UnreachableError extends TerminalError {
  readonly cluster: ClusterName;

  constructor(cluster: ClusterName, cause: TransportError) {
    super(`cannot connect to the ${cluster} cluster: ${cause.message}`, { cause });
    this.cluster = cluster;
  }
}

/** The failure of a request as an error that the user can act on. */
export async function reaching<T>(cluster: ClusterName, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof StatusError)
      throw new TerminalError(`the ${cluster} cluster: ${error.message}${adviceFor(error)}`, {
        cause: error,
      });
    if (error instanceof TransportError) throw new UnreachableError(cluster, error);
    throw error;
  }
}

function adviceFor(error: StatusError): string {
  const { code } = error;
  if (isAnonymous(error))
    return '; no credential reached it: check the user of the context in the kubeconfig, and proxies before the API server';
  if (code === 401) return '; renew the token or certificate there';
  if (code === 403) return '; grant what "endpoint-syncer rbac" prints to the user of the kubeconfig';
  return '';
}
