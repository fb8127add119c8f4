/** Mappings of virtual to host namespaces, with patterns, and what is wrong with them. */

import { describeMapping, reachesNamespace } from '../../shared-config/shared.ts';
import { isDnsLabel } from '../../kube/names.ts';
import type { NamespaceMode } from './types.ts';

interface NamespaceMappings {
  toHost(virtualNamespace: string): string | undefined;
  /** Every virtual namespace that translates to this host namespace, the most specific one first. */
  candidates(hostNamespace: string): readonly string[];
}

const NAME_PLACEHOLDER = '${name}';
const WILDCARD = '*';

interface PatternEntry {
  readonly virtualPrefix: string;
  readonly hostPrefix: string;
}

interface HostNamespaceSettings {
  readonly name: string;
  readonly sync: { readonly namespaces: NamespaceMode };
  readonly host: { readonly namespace: string };
  readonly createNamespaces: boolean;
}

/** The host namespaces that can contain copies and what references name; undefined: the configuration does not limit them. */
export function hostNamespaces({
  sync,
  name,
  host,
  createNamespaces,
}: HostNamespaceSettings): readonly string[] | undefined {
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
  return { toHost, candidates };
}

function isPattern(text: string): boolean {
  return text.indexOf(WILDCARD) === text.length - 1 && text !== '';
}

function firstRenamed(patterns: readonly PatternEntry[], namespace: string): string | undefined {
  const entry = patterns.find(({ virtualPrefix }) => namespace.startsWith(virtualPrefix));
  return entry && entry.hostPrefix + namespace.slice(entry.virtualPrefix.length);
}

function resolvePlaceholder(text: string, vcluster: string): string {
  return text.replaceAll(NAME_PLACEHOLDER, () => vcluster);
}

interface NamespaceMappingProblem {
  /** The virtual side of the mapping, as written. */
  readonly key: string;
  readonly message: string;
}

/** Longest literal prefix of a pattern: something must be left for what the wildcard stands for. */
const PREFIX_MAX = 32;
const LABEL_PREFIX = /^[a-z0-9][-a-z0-9]*$/;

type Side = 'virtual namespace' | 'host namespace';

interface Subject {
  readonly vcluster: string;
  /** Empty: not known yet, nothing can conflict with it. */
  readonly hostNamespace: string;
}

/** The first problem of each mapping. */
export function checkNamespaceMappings(
  byName: Readonly<Record<string, string>>,
  vcluster: string,
  hostNamespace: string,
): readonly NamespaceMappingProblem[] {
  const seenHosts = new Set<string>();
  const problems: NamespaceMappingProblem[] = [];
  for (const [virtual, host] of Object.entries(byName)) {
    const resolved = resolvePlaceholder(host, vcluster);
    const message = seenHosts.has(resolved)
      ? `duplicate host namespace '${host}' found in mappings`
      : mappingProblem(virtual, host, { vcluster, hostNamespace });
    seenHosts.add(resolved);
    if (message !== undefined) problems.push({ key: virtual, message });
  }
  return problems;
}

function mappingProblem(virtual: string, host: string, subject: Subject): string | undefined {
  const isPattern = virtual.includes(WILDCARD);
  if (isPattern !== host.includes(WILDCARD)) {
    return `'${virtual}':'${host}' has mismatched wildcard '*' usage - pattern must always map to another pattern`;
  }
  const check = isPattern ? patternProblem : exactProblem;
  return (
    (host === WILDCARD ? `host pattern mappings must use a prefix before wildcard: ${host}` : undefined) ??
    check(virtual, 'virtual namespace', subject.vcluster) ??
    check(host, 'host namespace', subject.vcluster) ??
    reservedProblem(host, subject)
  );
}

function exactProblem(name: string, side: Side, vcluster: string): string | undefined {
  if (name === '') return `${side} cannot be empty`;
  const placeholder = placeholderProblem(name, side);
  if (placeholder !== undefined) return placeholder;
  const resolved = resolvePlaceholder(name, vcluster);
  return isDnsLabel(resolved)
    ? undefined
    : `invalid ${side} name '${name}': lower-case letters, digits and '-', at most 63, starting and ending with a letter or a digit`;
}

function patternProblem(pattern: string, side: Side, vcluster: string): string | undefined {
  if (pattern.split(WILDCARD).length !== 2)
    return `${side} pattern '${pattern}' must contain exactly one '*'`;
  if (!pattern.endsWith(WILDCARD))
    return `${side} pattern '${pattern}' must have the wildcard '*' at the end`;
  const prefix = pattern.slice(0, -1);
  const placeholder = placeholderProblem(prefix, `${side} pattern prefix`);
  if (placeholder !== undefined) return `${placeholder} (from pattern '${pattern}')`;
  const literal = resolvePlaceholder(prefix, vcluster);
  if (literal.length > PREFIX_MAX) {
    return (
      `literal parts of ${side} pattern prefix '${prefix}' (from '${pattern}') cannot be longer than ${PREFIX_MAX} characters ` +
      `(literal length: ${literal.length})`
    );
  }
  return literal === '' || LABEL_PREFIX.test(literal)
    ? undefined
    : `invalid ${side} pattern '${pattern}': lower-case letters, digits and '-', beginning with a letter or a digit`;
}

function placeholderProblem(text: string, what: string): string | undefined {
  const uses = text.split(NAME_PLACEHOLDER).length - 1;
  if (uses > 1) return `${what} '${text}' contains placeholder '${NAME_PLACEHOLDER}' multiple times`;
  const rest = text.replaceAll(NAME_PLACEHOLDER, '');
  if (!rest.includes('${') || !rest.includes('}')) return undefined;
  return `${what} '${text}' contains an unsupported placeholder; only '${NAME_PLACEHOLDER}' is allowed`;
}

function reservedProblem(host: string, { vcluster, hostNamespace }: Subject): string | undefined {
  if (hostNamespace === '' || !reachesNamespace(host, vcluster, hostNamespace)) return undefined;
  return `${describeMapping(host)} conflicts with control plane namespace '${hostNamespace}'`;
}
