/** Translates names and namespaces by the naming rule of one virtual cluster. */

import { LRUCache } from 'lru-cache';
import type { NamespaceMode } from '../../config/config.ts';
import { isDnsLabel } from '../../kube/names.ts';
import type { NamespacedName } from '../../kube/object.ts';
import {
  clusterScopedName,
  hostName,
  hostNameShort,
  isCopiedByKind,
  legacyHostNamespace,
  legacySuffix,
} from './names.ts';
import { compileNamespaceMappings } from './namespace-mappings.ts';
import type { NameTranslator, ReferenceKind } from './types.ts';

export interface NameTranslatorOptions {
  readonly vcluster: string;
  /** The namespace of the virtual cluster on the host. */
  readonly hostNamespace: string;
  readonly mode: NamespaceMode;
  /** The form of the names that {@link NameTranslator.referenceToHost} returns if names are not kept. */
  readonly referenceNaming: 'short' | 'long';
}

const EMPTY: NamespacedName = { namespace: '', name: '' };
/** Looser than a DNS subdomain. */
const SUBDOMAIN = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;
const SEPARATOR = '-x-';

/** How namespaces translate in one mode. */
interface NamespaceRule {
  /** Undefined: this mode has no host namespace for it, the single-namespace rule may have. */
  toHost(virtualNamespace: string): string | undefined;
  candidates(hostNamespace: string): readonly string[];
  isTarget(hostNamespace: string): boolean;
  /** Virtual namespaces that the rule leaves out live in the virtual cluster's own host namespace under long names. */
  readonly hasFallback: boolean;
}

export function createNameTranslator(options: NameTranslatorOptions): NameTranslator {
  const { vcluster, hostNamespace, referenceNaming } = options;
  const rule = namespaceRule(options);
  const fallback = rule.hasFallback ? hostNamespace : undefined;

  const rename = (
    virtual: NamespacedName,
    build: (name: string, namespace: string, vcluster: string) => string,
  ): NamespacedName | undefined => {
    if (virtual.name === '') return EMPTY;
    const kept = rule.toHost(virtual.namespace);
    if (kept !== undefined) return { namespace: kept, name: virtual.name };
    if (fallback === undefined) return undefined;
    return { namespace: fallback, name: build(virtual.name, virtual.namespace, vcluster) };
  };
  const toHost = (virtual: NamespacedName): NamespacedName | undefined => rename(virtual, hostName);
  const shortToHost = (virtual: NamespacedName): NamespacedName | undefined => rename(virtual, hostNameShort);
  const isCopyAt = (host: NamespacedName) => (virtual: NamespacedName) => {
    const forward = toHost(virtual);
    return forward?.name === host.name && forward.namespace === host.namespace;
  };

  return {
    vcluster,
    hostNamespace,
    keepsName: (namespace) => rule.toHost(namespace) !== undefined,
    namespaceToHost: (namespace) => rule.toHost(namespace) ?? fallback,
    namespaceToVirtual: (namespace) => rule.candidates(namespace)[0],
    isTargetNamespace: (namespace) => namespace === fallback || rule.isTarget(namespace),
    toHost,
    shortToHost,
    referenceToHost(virtual, kind) {
      if (isApiServer(virtual, kind)) return { namespace: hostNamespace, name: vcluster };
      return referenceNaming === 'long' || isCopiedByKind(kind) ? toHost(virtual) : shortToHost(virtual);
    },
    clusterScopedToHost: (name) => clusterScopedName(name, hostNamespace, vcluster),
    clusterScopedToVirtual(name) {
      const tail = `${SEPARATOR}${hostNamespace}${SEPARATOR}${vcluster}`;
      if (!name.startsWith('vcluster-') || !name.endsWith(tail)) return undefined;
      const virtual = name.slice('vcluster-'.length, -tail.length);
      return virtual !== '' && clusterScopedName(virtual, hostNamespace, vcluster) === name
        ? virtual
        : undefined;
    },
    toVirtualCandidates(host) {
      const kept = rule.candidates(host.namespace).map((namespace) => ({ namespace, name: host.name }));
      const long = host.namespace === fallback ? splits(host.name, vcluster) : [];
      return [...kept, ...long].filter(isCopyAt(host));
    },
  };
}

/** The Service of the virtual API server, and its Endpoints. */
function isApiServer({ namespace, name }: NamespacedName, { group, kind }: ReferenceKind): boolean {
  const isServed = group === '' && (kind === 'Service' || kind === 'Endpoints');
  return isServed && namespace === 'default' && name === 'kubernetes';
}

function namespaceRule({ mode, vcluster, hostNamespace }: NameTranslatorOptions): NamespaceRule {
  switch (mode.kind) {
    case 'single':
      return { toHost: () => undefined, candidates: () => [], isTarget: () => false, hasFallback: true };
    case 'legacy-multi':
      return legacyRule(vcluster, hostNamespace);
    case 'mappings': {
      const mappings = compileNamespaceMappings(mode.byName, vcluster);
      return {
        toHost: (namespace) => mappings.toHost(namespace),
        candidates: (namespace) => mappings.candidates(namespace),
        isTarget: (namespace) => mappings.toVirtual(namespace) !== undefined,
        hasFallback: !mode.mappingsOnly,
      };
    }
  }
}

function legacyRule(vcluster: string, hostNamespace: string): NamespaceRule {
  const suffix = legacySuffix(hostNamespace, vcluster);
  const target = new RegExp(`^vcluster-[0-9a-f]{8}-${suffix}$`);
  const remembered = new LRUCache<string, string>({ max: 1024 });
  return {
    toHost(namespace) {
      const known = remembered.get(namespace);
      if (known !== undefined) return known;
      const host = legacyHostNamespace(namespace, suffix);
      remembered.set(namespace, host);
      return host;
    },
    candidates: () => [],
    isTarget: (namespace) => target.test(namespace),
    hasFallback: false,
  };
}

/** Every way to read `NAME-x-NAMESPACE-x-VCLUSTER`: the separator may be part of a name as well. */
function splits(name: string, vcluster: string): readonly NamespacedName[] {
  const tail = SEPARATOR + vcluster;
  if (!name.endsWith(tail)) return [];
  const pair = name.slice(0, -tail.length);
  const found: NamespacedName[] = [];
  for (let at = pair.indexOf(SEPARATOR); at >= 0; at = pair.indexOf(SEPARATOR, at + 1)) {
    const candidate = { name: pair.slice(0, at), namespace: pair.slice(at + SEPARATOR.length) };
    if (SUBDOMAIN.test(candidate.name) && isDnsLabel(candidate.namespace)) found.push(candidate);
  }
  return found;
}
