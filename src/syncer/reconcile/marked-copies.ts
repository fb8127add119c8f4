/** Copies found by the marker of this virtual cluster, once after the start and each reload, where the rights allow it. Those in host namespaces that
 * are not mapped any more are deleted, if this virtual cluster has the object that they were made from: another one of this name may have the marker. */

import { messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { retry, type RetryOptions } from '../../base/retry.ts';
import { keyOf, type KubeObject, type NamespacedName, type Resource } from '../../kube/object.ts';
import { listPages } from '../../kube/list-pages.ts';
import { isTransient } from '../../kube/status-error.ts';
import type { ClusterClient, Lister, RequestOptions } from '../../kube/types.ts';
import { OBJECT_UID, virtualByAnnotations } from '../translate/bookkeeping.ts';
import { MANAGED_BY_LABEL } from '../translate/labels.ts';
import { recordOf } from '../translate/last-synced.ts';
import type { NameTranslator } from '../translate/types.ts';
import { isOptedOut } from './decide.ts';
import type { Writer } from './writer.ts';

/** Attempts of a request that has to succeed once after a start. */
export const SWEEP_ATTEMPTS = { attemptsMax: 6, baseMs: 500, maxMs: 8000 };

export interface MarkedOptions extends RequestOptions {
  /** One virtual cluster, or several. */
  readonly vcluster: string | readonly string[];
  /** Undefined: every namespace. */
  readonly namespaces: readonly string[] | undefined;
}

/** The metadata of all objects with the marker. */
export async function listMarked(
  client: ClusterClient,
  resource: Resource,
  { vcluster, namespaces, ...options }: MarkedOptions,
): Promise<readonly KubeObject[]> {
  const labelSelector =
    typeof vcluster === 'string'
      ? `${MANAGED_BY_LABEL}=${vcluster}`
      : `${MANAGED_BY_LABEL} in (${vcluster.join(', ')})`;
  const found: KubeObject[] = [];
  for (const namespace of namespaces ?? [undefined]) {
    const scope = { ...options, namespace, labelSelector, isMetadataOnly: true };
    for (const copy of await listPages(client, resource, scope, (object) => object)) found.push(copy);
  }
  return found;
}

/** The object whose copy this program made there, according to the copy; undefined: it is no such copy, or its namespace is mapped. */
export function unmappedVirtual(
  copy: KubeObject,
  resource: Resource,
  names: Pick<NameTranslator, 'isTargetNamespace' | 'vcluster'>,
): NamespacedName | undefined {
  const { namespace = '', labels } = copy.metadata;
  if (names.isTargetNamespace(namespace) || labels?.[MANAGED_BY_LABEL] !== names.vcluster) return undefined;
  return recordOf(copy) === undefined ? undefined : virtualByAnnotations(copy, resource);
}

export function isCopyFrom(copy: KubeObject, virtual: KubeObject | undefined): boolean {
  const uid = copy.metadata.annotations?.[OBJECT_UID];
  return uid !== undefined && uid === virtual?.metadata.uid;
}

export interface UnmappedOptions {
  readonly host: ClusterClient;
  readonly resource: Resource;
  readonly names: NameTranslator;
  readonly virtual: Pick<Lister, 'get'>;
  readonly writer: Pick<Writer, 'delete'>;
  readonly retry: Omit<RetryOptions, 'isRetryable'>;
  readonly logger: Logger;
}

const REASON = 'its host namespace is not mapped any more';
/** The command that removes copies which the daemon leaves. */
export const CLEANUP = 'endpoint-syncer cleanup --unused --config FILE';

/** Never rejects: what is left is in the log, with the command that removes it. False: the copies cannot be listed. */
export async function deleteUnmapped(options: UnmappedOptions): Promise<boolean> {
  const { resource, names, virtual, logger } = options;
  const { kind } = resource;
  const listed = await listAll(options);
  if (listed === undefined) return false;
  const found = listed.flatMap((copy) => {
    const of = isOptedOut(copy) ? undefined : unmappedVirtual(copy, resource, names);
    return of === undefined || isOptedOut(virtual.get(keyOf(of))) ? [] : [{ copy, key: keyOf(of) }];
  });
  const proven = new Set(found.filter(({ copy, key }) => isCopyFrom(copy, virtual.get(key))));
  const outcomes = await Promise.all([...proven].map(({ copy }) => remove(copy, options)));
  const left = outcomes.flatMap((outcome) => (typeof outcome === 'object' ? [outcome.error] : []));
  const unproven = found.filter((one) => !proven.has(one)).map(({ copy }) => copy);
  const deleted = outcomes.filter((outcome) => outcome === 'deleted').length;
  if (deleted > 0) logger.info({ kind, copies: deleted, reason: REASON }, 'copies deleted');
  if (left.length > 0)
    logger.warn(
      { kind, copies: left.length, error: left[0], command: CLEANUP },
      'copies are left in host namespaces that are not mapped any more; the command removes them',
    );
  if (unproven.length > 0)
    logger.warn(
      { kind, copies: unproven.length, namespaces: namespacesOf(unproven) },
      'host namespaces that are not mapped have copies of objects that this virtual cluster does not have: of deleted objects, or of another ' +
        'virtual cluster of this name',
    );
  return true;
}

function namespacesOf(copies: readonly KubeObject[]): string {
  return [...new Set(copies.map(({ metadata: { namespace = '' } }) => namespace))].toSorted().join(', ');
}

/** Undefined without the right to list every namespace. */
async function listAll({
  host,
  resource,
  names,
  logger,
  retry: attempts,
}: UnmappedOptions): Promise<readonly KubeObject[] | undefined> {
  const { signal } = attempts;
  const list = (): Promise<readonly KubeObject[]> =>
    listMarked(host, resource, { vcluster: names.vcluster, namespaces: undefined, signal });
  try {
    return await retry(list, { ...attempts, isRetryable: isTransient });
  } catch (error) {
    const why = messageOf(error);
    logger.debug({ kind: resource.kind, error: why }, 'copies in other host namespaces cannot be listed');
    return undefined;
  }
}

async function remove(
  { metadata }: KubeObject,
  { writer, retry: attempts }: UnmappedOptions,
): Promise<'deleted' | 'dryRun' | { readonly error: string }> {
  const { namespace = '', name, uid = '' } = metadata;
  try {
    const deletion = () => writer.delete({ namespace, name }, uid, REASON);
    return await retry(deletion, { ...attempts, isRetryable: isTransient });
  } catch (error) {
    return { error: messageOf(error) };
  }
}
