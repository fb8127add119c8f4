/** The names of an object on both sides of a sync, of any kind, without a cluster. */

import { keyOf, type NamespacedName } from '../../kube/object.ts';
import { isDnsLabel, isDnsSubdomain, NAME_LENGTH_MAX } from '../../kube/names.ts';
import type { Config } from '../config/config.ts';
import { SYNCABLE_RESOURCES } from '../kinds/synced-kinds.ts';
import { NEVER_SYNCED } from '../reconcile/decide.ts';
import type { NameTranslator } from '../translate/types.ts';
import { createTranslators } from '../translation.ts';
import { isNamedBy, knownKind, similarKind, type KnownKind } from './kind-names.ts';

interface ObjectName {
  readonly virtual: NamespacedName;
  readonly host: NamespacedName;
  /** The name that a reference patch writes; '' for cluster-scoped kinds, which cannot be referenced. */
  readonly shortName: string;
}

interface TranslatedNames {
  /** In its usual spelling, if it is known. */
  readonly kind: string;
  /** What is wrong with the kind or the names; then there are no results. */
  readonly problems: readonly string[];
  /** About the kind. */
  readonly note?: string | undefined;
  /** Of each name. */
  readonly results: readonly NameTranslation[];
}

/** `why`: there is no translation; `note`: a remark on it. */
interface NameTranslation {
  readonly names: readonly ObjectName[];
  readonly why?: string;
  readonly note?: string;
}

/** A kind, a resource (`gadgets`), or a resource with its group (`gadgets.example.com`). */
const KIND = /^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9.-]+)?$/u;

/** The host names of virtual ones, or with `isReverse` every virtual name that translates to a host one. */
export function translateNames(
  config: Config,
  texts: readonly string[],
  { kind: given, isReverse }: { readonly kind: string; readonly isReverse: boolean },
): TranslatedNames {
  const known = knownKind(given);
  const { kind, scope } = known;
  const failed = (problems: readonly string[]): TranslatedNames => ({ kind, problems, results: [] });
  if (!KIND.test(kind)) return failed([`--kind must be the name of a kind, such as Secret, found "${kind}"`]);
  // A host name without a namespace is in the host namespace.
  const isBare = (text: string): boolean => isReverse && !text.includes('/') && scope === 'namespaced';
  const full = texts.map((text) => (isBare(text) ? `${config.host.namespace}/${text}` : text));
  const parsed = full.map((text) => parseName(text, known));
  const problems = parsed.filter((one) => typeof one === 'string');
  if (problems.length > 0) return failed(problems);
  const { names } = createTranslators(config);
  const valid = parsed.filter((one) => typeof one !== 'string');
  const results = valid.map((name, at): NameTranslation => {
    const {
      names: found,
      why,
      note,
    } = isReverse ? inVirtual(known, name, names) : onHost(known, name, names);
    return {
      names: found,
      ...(why !== undefined && { why: `${full[at]}: ${why}` }),
      ...(note !== undefined && { note: `${full[at]}: ${note}` }),
    };
  });
  const isUnknown = scope === 'unknown' && !isNamedBy(config, kind);
  const hint = similarKind(kind) || '; it is treated as a custom resource';
  const note = isUnknown ? `kind "${kind}" is not known here${hint}` : undefined;
  return { kind, problems, note, results };
}

/** Names of these kinds may be any path segment (`system:node`). */
const PATH_NAMED = new Set(['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']);

/** What is wrong with it, as text. */
function parseName(text: string, { kind, scope }: KnownKind): NamespacedName | string {
  const parts = text.split('/');
  const isNamespaced = scope === 'namespaced' || (scope === 'unknown' && parts.length > 1);
  if (parts.length !== (isNamespaced ? 2 : 1)) {
    const rule = isNamespaced
      ? 'namespaced, write NAMESPACE/NAME'
      : 'cluster-scoped, write NAME without a namespace';
    return `"${text}": ${kind} objects are ${rule}`;
  }
  const [namespace = '', name = ''] = isNamespaced ? parts : ['', text];
  if (isNamespaced && !isDnsLabel(namespace)) {
    const rule = `lower-case letters, digits and "-", at most 63, starting and ending with a letter or a digit`;
    return `"${text}": "${namespace}" is not the name of a namespace (${rule})`;
  }
  if (!isNameOf(kind, name)) {
    const rule = `lower-case letters, digits, "-" and ".", at most ${NAME_LENGTH_MAX}, starting and ending with a letter or a digit`;
    return `"${text}": "${name}" is not the name of an object (${rule})`;
  }
  return { namespace, name };
}

function isNameOf(kind: string, name: string): boolean {
  if (name === '' || name.length > NAME_LENGTH_MAX) return false;
  if (PATH_NAMED.has(kind)) return name !== '.' && name !== '..' && !/[/%\s]/.test(name);
  return kind === 'Namespace' ? isDnsLabel(name) : isDnsSubdomain(name);
}

/** The host name of a virtual one; the namespace of a cluster-scoped object is ''. */
function onHost(kind: KnownKind, virtual: NamespacedName, names: NameTranslator): NameTranslation {
  const { namespace, name } = virtual;
  const host = namespace === '' ? clusterScopedHost(name, kind, names) : names.toHost(virtual);
  if (host === undefined) {
    const why =
      `namespace "${namespace}" has no entry in sync.toHost.namespaces.mappings.byName and mappingsOnly is set, ` +
      'so it has no name on the host';
    return { names: [], why };
  }
  const found = [objectName({ virtual, host }, names)];
  const own = SYNCABLE_RESOURCES.find((resource) => resource.kind === kind.kind);
  const group = kind.group ?? own?.group ?? '';
  const reference = names.referenceToHost(virtual, { group, kind: kind.kind });
  const isOther = namespace !== '' && reference !== undefined && keyOf(reference) !== keyOf(host);
  const written = isOther ? `a reference patch writes "${reference.name}"; ` : '';
  const isNeverSynced = keyOf(virtual) === NEVER_SYNCED && own !== undefined;
  if (!isNeverSynced && !isOther) return { names: found };
  const what = isNeverSynced
    ? 'it is never synced, and the row shows the name that the naming rule would produce'
    : `"${host.name}" is the name of the copy that vCluster syncs`;
  return { names: found, note: `${written}${what}` };
}

function inVirtual(kind: KnownKind, host: NamespacedName, names: NameTranslator): NameTranslation {
  const virtuals =
    host.namespace === '' ? clusterScopedVirtual(host.name, kind, names) : names.toVirtualCandidates(host);
  const found = virtuals.map((virtual) => objectName({ virtual, host }, names));
  return found.length > 0 ? { names: found } : { names: [], why: reasonForNone(host, names) };
}

/** A Namespace follows the namespace mapping, if there is one; every other kind follows the cluster-scoped rule. */
function clusterScopedHost(name: string, { kind }: KnownKind, names: NameTranslator): NamespacedName {
  const mapped = kind === 'Namespace' && names.keepsName(name) ? names.namespaceToHost(name) : undefined;
  return { namespace: '', name: mapped ?? names.clusterScopedToHost(name) };
}

function clusterScopedVirtual(
  hostName: string,
  { kind }: KnownKind,
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
