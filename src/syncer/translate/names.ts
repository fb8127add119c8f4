/** Translates names and namespaces by the naming rule of one virtual cluster, and the rules. */

import { hash } from 'node:crypto';
import type { NamespaceMode } from './types.ts';
import { isDnsLabel, LABEL_LENGTH_MAX } from '../../kube/names.ts';
import type { NamespacedName } from '../../kube/object.ts';
import { compileNamespaceMappings } from './namespace-mappings.ts';
import type { NameTranslator, ReferenceKind } from './types.ts';

interface NameTranslatorOptions {
  readonly vcluster: string;
  readonly hostNamespace: string;
  readonly mode: NamespaceMode;
  /** The form of the names that {@link NameTranslator.referenceToHost} returns if names are not kept. */
  readonly referenceNaming: 'short' | 'long';
  /** A syncer copies the objects of this kind under their long names, referenced or not. */
  readonly isCopiedByKind: (kind: ReferenceKind) => boolean;
  /** A syncer copies Pods to the host. Default: true. */
  readonly arePodsCopied?: boolean;
}

const EMPTY: NamespacedName = { namespace: '', name: '' };
/** Looser than a DNS subdomain. */
const SUBDOMAIN = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;
const SEPARATOR = '-x-';

interface NamespaceRule {
  /** Undefined: this mode has no host namespace for it, the single-namespace rule may have. */
  toHost(virtualNamespace: string): string | undefined;
  candidates(hostNamespace: string): readonly string[];
  isTarget(hostNamespace: string): boolean;
  /** Virtual namespaces that the rule leaves out live in the virtual cluster's own host namespace under long names. */
  readonly hasFallback: boolean;
}

export function createNameTranslator(options: NameTranslatorOptions): NameTranslator {
  const { vcluster, hostNamespace, referenceNaming, isCopiedByKind, arePodsCopied = true } = options;
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
    podToHost: (virtual) => (arePodsCopied ? toHost(virtual) : undefined),
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
      const isTarget = (namespace: string): boolean => mappings.candidates(namespace).length > 0;
      return { ...mappings, isTarget, hasFallback: !mode.mappingsOnly };
    }
  }
}

/** vCluster 0.25's multi-namespace mode. */
function legacyRule(vcluster: string, hostNamespace: string): NamespaceRule {
  const suffix = digest8(`${hostNamespace}x${vcluster}`);
  const target = new RegExp(`^vcluster-[0-9a-f]{8}-${suffix}$`);
  return {
    toHost: (namespace) => `vcluster-${digest8(namespace)}-${suffix}`,
    candidates: () => [],
    isTarget: (namespace) => target.test(namespace),
    hasFallback: false,
  };
}

function digest8(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 8);
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

/** Length of the prefix that is kept of a longer name, before a dash and digits of its digest. */
const KEPT_BYTES = 52;
const DIGEST_DIGITS = 10;
const SHORT_DIGITS = 13;

/** Joins with dashes; more than 63 bytes are cut and closed with a digest of the whole, so that different names stay different. */
export function safeConcat(parts: readonly string[]): string {
  return shorten(parts.join('-'));
}

function shorten(full: string): string {
  // UTF-16 units never outnumber UTF-8 bytes, and three times as many bytes is the most there can be.
  if (full.length * 3 <= LABEL_LENGTH_MAX) return full;
  const bytes = Buffer.byteLength(full);
  if (bytes <= LABEL_LENGTH_MAX) return full;
  const isAscii = bytes === full.length;
  const kept = isAscii ? full.slice(0, KEPT_BYTES) : Buffer.from(full).subarray(0, KEPT_BYTES).toString();
  return `${kept}-${hash('sha256', full, 'hex').slice(0, DIGEST_DIGITS)}`.replaceAll('.-', '-');
}

export function hostName(name: string, namespace: string, vcluster: string): string {
  return name === '' ? '' : shorten(`${name}-x-${namespace}-x-${vcluster}`);
}

/** `v` and 13 digits in base 36: short enough for any name field, and never to be mistaken for a user's name. */
export function hostNameShort(name: string, namespace: string, vcluster: string): string {
  if (name === '') return '';
  const hex = hash('sha256', `${name}-x-${namespace}-x-${vcluster}`, 'hex');
  return `v${base36(hex).slice(0, SHORT_DIGITS)}`;
}

/** Most significant digit first, one `0` in front for each leading zero byte. */
function base36(hex: string): string {
  let zeroBytes = 0;
  while (hex.startsWith('00', zeroBytes * 2)) zeroBytes++;
  return '0'.repeat(zeroBytes) + BigInt(`0x${hex}`).toString(36);
}

export function clusterScopedName(name: string, hostNamespace: string, vcluster: string): string {
  return name === '' ? '' : safeConcat(['vcluster', name, 'x', hostNamespace, 'x', vcluster]);
}
