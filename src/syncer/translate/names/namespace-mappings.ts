/** `sync.toHost.namespaces.mappings.byName`, compiled: exact entries first, then the most specific pattern. */

import type { Config } from '../../../config/types.ts';

export interface NamespaceMappings {
  toHost(virtualNamespace: string): string | undefined;
  /** The most specific result; {@link candidates} returns all if several entries map to one host namespace. */
  toVirtual(hostNamespace: string): string | undefined;
  /** Every virtual namespace that translates to this host namespace. */
  candidates(hostNamespace: string): readonly string[];
}

/** Stands for the virtual cluster's name on either side of a mapping. */
export const NAME_PLACEHOLDER = '${name}';
export const WILDCARD = '*';

interface PatternEntry {
  readonly virtualPrefix: string;
  readonly hostPrefix: string;
}

/** The host namespaces that can contain copies and what references name; undefined: the configuration does not limit them. */
export function hostNamespaces({
  sync,
  name,
  host,
  createNamespaces,
}: Pick<Config, 'sync' | 'name' | 'host' | 'createNamespaces'>): readonly string[] | undefined {
  const mode = sync.namespaces;
  if (mode.kind === 'single') return [host.namespace];
  // The rights in a namespace cannot be granted before it exists.
  if (mode.kind !== 'mappings' || createNamespaces) return undefined;
  const targets = Object.values(mode.byName).map((target) => resolvePlaceholder(target, name));
  if (targets.some((target) => target.includes(WILDCARD))) return undefined;
  return [...new Set([host.namespace, ...targets])];
}

/** Entries that {@link checkNamespaceMappings} refuses are left out: this never throws. */
export function compileNamespaceMappings(
  byName: Readonly<Record<string, string>>,
  vcluster: string,
): NamespaceMappings {
  const exact = new Map<string, string>();
  const patterns: PatternEntry[] = [];
  for (const [virtual, host] of Object.entries(byName)) {
    const [from, to] = [resolvePlaceholder(virtual, vcluster), resolvePlaceholder(host, vcluster)];
    if (isPattern(from) && isPattern(to)) {
      patterns.push({ virtualPrefix: from.slice(0, -1), hostPrefix: to.slice(0, -1) });
    } else if (!from.includes(WILDCARD) && !to.includes(WILDCARD)) {
      exact.set(from, to);
    }
  }
  patterns.sort((a, b) => b.virtualPrefix.length - a.virtualPrefix.length);
  const byHostPrefix = patterns.toSorted((a, b) => b.hostPrefix.length - a.hostPrefix.length);

  const toHost = (namespace: string): string | undefined =>
    exact.get(namespace) ?? firstRenamed(patterns, namespace);
  const candidates = (namespace: string): readonly string[] => {
    const exactOnes = [...exact].filter(([, host]) => host === namespace).map(([virtual]) => virtual);
    const byPattern = byHostPrefix
      .filter(({ hostPrefix }) => namespace.startsWith(hostPrefix))
      .map(({ virtualPrefix, hostPrefix }) => virtualPrefix + namespace.slice(hostPrefix.length))
      .filter((virtual) => virtual !== '' && toHost(virtual) === namespace);
    return [...new Set([...exactOnes, ...byPattern])];
  };
  return { toHost, candidates, toVirtual: (namespace) => candidates(namespace)[0] };
}

function isPattern(text: string): boolean {
  return text.indexOf(WILDCARD) === text.length - 1 && text !== '';
}

function firstRenamed(patterns: readonly PatternEntry[], namespace: string): string | undefined {
  const entry = patterns.find(({ virtualPrefix }) => namespace.startsWith(virtualPrefix));
  return entry && entry.hostPrefix + namespace.slice(entry.virtualPrefix.length);
}

export function resolvePlaceholder(text: string, vcluster: string): string {
  return text.replaceAll(NAME_PLACEHOLDER, () => vcluster);
}
