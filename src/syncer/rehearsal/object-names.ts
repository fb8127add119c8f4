/** The names of an object on both sides of a sync, of any kind, without a cluster. */

import { keyOf, type KindName, type NamespacedName } from '../../kube/object.ts';
import type { Config } from '../config/config.ts';
import { SYNCABLE_RESOURCES } from '../kinds/synced-kinds.ts';
import { NEVER_SYNCED } from '../reconcile/decide.ts';
import type { NameTranslator } from '../translate/types.ts';
import { createTranslators } from '../translation.ts';

interface ObjectName {
  readonly virtual: NamespacedName;
  readonly host: NamespacedName;
  /** The name that a reference patch writes; '' for cluster-scoped kinds, which cannot be referenced. */
  readonly shortName: string;
}

/** `why`: there is no translation; `note`: a remark on it. */
interface TranslatedName {
  readonly names: readonly ObjectName[];
  readonly why?: string;
  readonly note?: string;
}

export class ObjectNames {
  readonly #names: NameTranslator;

  constructor(config: Config) {
    this.#names = createTranslators(config).names;
  }

  /** The host name of a virtual one; the namespace of a cluster-scoped object is ''. */
  onHost(kind: KindName, virtual: NamespacedName): TranslatedName {
    const { namespace, name } = virtual;
    const host = namespace === '' ? clusterScopedHost(name, kind, this.#names) : this.#names.toHost(virtual);
    if (host === undefined) {
      const why =
        `namespace "${namespace}" has no entry in sync.toHost.namespaces.mappings.byName and mappingsOnly is set, ` +
        'so it has no name on the host';
      return { names: [], why };
    }
    const found = [objectName({ virtual, host }, this.#names)];
    const own = SYNCABLE_RESOURCES.find((resource) => resource.kind === kind.kind);
    const group = kind.group ?? own?.group ?? '';
    const reference = this.#names.referenceToHost(virtual, { group, kind: kind.kind });
    const isOther = namespace !== '' && reference !== undefined && keyOf(reference) !== keyOf(host);
    const written = isOther ? `a reference patch writes "${reference.name}"; ` : '';
    const isNeverSynced = keyOf(virtual) === NEVER_SYNCED && own !== undefined;
    if (!isNeverSynced && !isOther) return { names: found };
    const what = isNeverSynced
      ? 'it is never synced, and the row shows the name that the naming rule would produce'
      : `"${host.name}" is the name of the copy that vCluster syncs`;
    return { names: found, note: `${written}${what}` };
  }

  /** Every virtual name that translates to a host one. */
  inVirtual(kind: KindName, host: NamespacedName): TranslatedName {
    const virtuals =
      host.namespace === ''
        ? clusterScopedVirtual(host.name, kind, this.#names)
        : this.#names.toVirtualCandidates(host);
    const found = virtuals.map((virtual) => objectName({ virtual, host }, this.#names));
    return found.length > 0 ? { names: found } : { names: [], why: reasonForNone(host, this.#names) };
  }
}

/** A Namespace follows the namespace mapping, if there is one; every other kind follows the cluster-scoped rule. */
function clusterScopedHost(name: string, { kind }: KindName, names: NameTranslator): NamespacedName {
  const mapped = kind === 'Namespace' && names.keepsName(name) ? names.namespaceToHost(name) : undefined;
  return { namespace: '', name: mapped ?? names.clusterScopedToHost(name) };
}

function clusterScopedVirtual(
  hostName: string,
  { kind }: KindName,
  names: NameTranslator,
): readonly NamespacedName[] {
  const ruled = names.clusterScopedToVirtual(hostName);
  const found = ruled === undefined || (kind === 'Namespace' && names.keepsName(ruled)) ? [] : [ruled];
  if (kind === 'Namespace') {
    const inside = names.toVirtualCandidates({ namespace: hostName, name: 'any' });
    found.push(...inside.map(({ namespace }) => namespace));
  }
  return found.map((name) => ({ namespace: '', name }));
}

function objectName(name: Pick<ObjectName, 'virtual' | 'host'>, names: NameTranslator): ObjectName {
  const { virtual } = name;
  const short = virtual.namespace === '' ? undefined : names.shortToHost(virtual);
  return { ...name, shortName: short?.name ?? '' };
}

function reasonForNone({ namespace, name }: NamespacedName, names: NameTranslator): string {
  if (namespace !== '' && !names.isTargetNamespace(namespace)) {
    return `objects of virtual cluster "${names.vcluster}" are not in this namespace`;
  }
  const isCut = /-[0-9a-f]{10}$/.test(name) && name.length > 50;
  if (isCut)
    return 'long names are truncated and end in a digest, which cannot be reversed; see the annotations of the host object';
  if (/^vcluster-[0-9a-f]{8}-[0-9a-f]{8}$/.test(namespace)) {
    return 'namespaces are hashed in this mode, which cannot be reversed; see the annotations of the host object';
  }
  return 'no virtual name translates to it';
}
