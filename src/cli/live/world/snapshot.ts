/** Everything that a sync would look at, read once from both clusters. */

import { TerminalError } from '../../../base/errors.ts';
import type { Config } from '../../../config/types.ts';
import {
  apiVersionOf,
  ENDPOINTS,
  NAMESPACES,
  SERVICES,
  type KubeObject,
  type Resource,
} from '../../../kube/object.ts';
import { isNotFound, StatusError } from '../../../kube/status-error.ts';
import { TransportError, type ClusterClient, type ClusterName } from '../../../kube/types.ts';
import { partsOfKind } from '../../../syncer/references/kinds/kind-registry.ts';
import {
  kindPolicy,
  resolveKind,
  resolveNamedKinds,
  type ReferencedKind,
} from '../../../syncer/references/kinds/referenced-kind.ts';
import type { OwnerReference } from '../../../syncer/translate/forge.ts';
import { kindIdOf, recordedKinds } from '../../../syncer/translate/merge/recorded-kinds.ts';
import type { NameTranslator } from '../../../syncer/translate/types.ts';
import { createTranslators } from '../../../syncer/translation.ts';
import type { Connection } from './connection.ts';

/** One kind in both clusters. */
export interface KindSnapshot {
  readonly virtual: readonly KubeObject[];
  readonly host: readonly KubeObject[];
}

export interface Snapshot {
  readonly config: Config;
  readonly endpoints: KindSnapshot;
  readonly services: readonly KubeObject[];
  /** Empty where they may not be listed. */
  readonly hostServices: readonly KubeObject[];
  /** Of every kind that references may lead to. */
  readonly referenced: readonly (KindSnapshot & { readonly kind: ReferencedKind })[];
  /** Host namespaces that copies belong to and that do not exist. */
  readonly missingNamespaces: ReadonlySet<string>;
  readonly owner: OwnerReference | undefined;
}

const PAGE_SIZE = 500;

/** Rejects with `TerminalError` where a list is not allowed, a cluster does not answer, or the configured owner does not exist. */
export async function readSnapshot(
  { config, clusters }: Connection,
  { isOwnerNeeded = true }: { readonly isOwnerNeeded?: boolean } = {},
): Promise<Snapshot> {
  const namespace = config.sync.namespaces.kind === 'single' ? config.host.namespace : '';
  const both = async (virtual: Resource, host: Resource): Promise<KindSnapshot> => {
    const [there, here] = await Promise.all([
      listAll(clusters.virtual, virtual, ''),
      listAll(clusters.host, host, namespace),
    ]);
    return { virtual: there, host: here };
  };
  const [endpoints, services, hostServices, owner] = await Promise.all([
    both(ENDPOINTS, ENDPOINTS),
    listAll(clusters.virtual, SERVICES, ''),
    listAll(clusters.host, SERVICES, namespace).catch(() => []),
    isOwnerNeeded ? reaching('host', () => clusters.resolveOwner(config)) : undefined,
  ]);
  const kinds = await referencedKinds(config, clusters.discoveries, endpoints.host);
  const referenced = await Promise.all(
    kinds.map(async (kind) => ({ kind, ...(await both(kind.virtual, kind.host)) })),
  );
  const { names } = createTranslators(config);
  const missingNamespaces = await missingOf(clusters.host, targetNamespaces(endpoints.virtual, names));
  return { config, endpoints, services, hostServices, referenced, missingNamespaces, owner };
}

/**
 * Kinds that a patch names; where data may choose the kind, those whose syncing is configured; and those that host copies name from an
 * earlier configuration, of which imports may be left. Both clusters have to serve what no patch names.
 */
async function referencedKinds(
  { sync }: Config,
  discoveries: Connection['clusters']['discoveries'],
  copies: readonly KubeObject[],
): Promise<readonly ReferencedKind[]> {
  const policy = kindPolicy(sync);
  const named = await reaching('virtual', () => resolveNamedKinds(policy, discoveries));
  const kinds = new Map(named.map((kind) => [kind.id, kind]));
  const reachable = (policy.isOpen ? policy.reachable : []).map((groupKind) => {
    const [group = '', kind = ''] = groupKind.split('/');
    return kindIdOf({ apiVersion: apiVersionOf({ group, version: 'v1' }), kind });
  });
  for (const id of new Set([...reachable, ...copies.flatMap(recordedKinds)])) {
    if (kinds.has(id)) continue;
    try {
      kinds.set(id, await resolveKind(partsOfKind(id), discoveries, policy));
    } catch (error) {
      if (!(error instanceof TerminalError)) throw error; // not served: there can be no object of it
    }
  }
  return [...kinds.values()];
}

/** Every object of one kind, with its type, which items of a list lack. */
export async function listAll(
  client: ClusterClient,
  resource: Resource,
  namespace: string,
): Promise<KubeObject[]> {
  const found: KubeObject[] = [];
  let continueToken = '';
  do {
    const page = await reaching(client.cluster, () =>
      client.list(resource, { limit: PAGE_SIZE, continueToken, ...(namespace === '' ? {} : { namespace }) }),
    );
    found.push(...page.items);
    ({ continueToken } = page);
  } while (continueToken !== '');
  return found.map((object) => ({ ...object, apiVersion: apiVersionOf(resource), kind: resource.kind }));
}

/** What a request failed for, as a user can act on it. */
export async function reaching<T>(cluster: ClusterName, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof StatusError)
      throw new TerminalError(`the ${cluster} cluster: ${error.message}`, { cause: error });
    if (error instanceof TransportError)
      throw new TerminalError(`cannot connect to the ${cluster} cluster: ${error.message}`, { cause: error });
    throw error;
  }
}

function targetNamespaces(virtual: readonly KubeObject[], names: NameTranslator): ReadonlySet<string> {
  const all = virtual.flatMap(({ metadata: { namespace = '' } }) => names.namespaceToHost(namespace) ?? []);
  return new Set([names.hostNamespace, ...all]);
}

/** A namespace that may not be read counts as existing. */
async function missingOf(host: ClusterClient, namespaces: ReadonlySet<string>): Promise<Set<string>> {
  const missing = new Set<string>();
  for (const name of namespaces) {
    try {
      await host.get(NAMESPACES, { namespace: '', name });
    } catch (error) {
      if (isNotFound(error)) missing.add(name);
    }
  }
  return missing;
}
