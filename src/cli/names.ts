/** `names`: translates names between the virtual cluster and the host. */

import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { loadConfig } from './config/load.ts';
import type { Config } from '../syncer/config/config.ts';
import { keyOf, type NamespacedName } from '../kube/object.ts';
import { createTranslators, type Translators } from '../syncer/translation.ts';
import { SYNCABLE_RESOURCES } from '../syncer/kinds/synced-kinds.ts';
import { addConfigOptions, loaderInput } from './config-options.ts';
import { type ExitWith, reportProblems, usageError, tell } from './output/terminal.ts';
import { formatListing, outputOption, type ListedRow } from './output/listing.ts';
import { isNamedBy, knownKind, similarKind, type KnownKind } from './kind-scope.ts';
import { isDnsLabel, isDnsSubdomain, NAME_LENGTH_MAX } from '../kube/names.ts';

type NameTranslator = Translators['names'];

/** A kind, a resource (`gadgets`), or a resource with its group (`gadgets.example.com`). */
const KIND = /^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9.-]+)?$/u;

interface NamesOptions {
  readonly kind: string;
  readonly reverse?: boolean;
  readonly output: string;
}

export function define(command: Command, exitWith: ExitWith): void {
  command
    .argument(
      '<names...>',
      'NAMESPACE/NAME, or NAME of a cluster-scoped kind; - reads one name per line from standard input',
    )
    .option('-k, --kind <kind>', 'kind of the objects', 'Endpoints')
    .option('-r, --reverse', 'translate host names to virtual names')
    .addOption(outputOption());
  addConfigOptions(command, ['name', 'host.namespace']);
  command.action((args: string[], options: NamesOptions) => exitWith(() => names(command, args, options)));
}

async function names(command: Command, args: readonly string[], options: NamesOptions): Promise<number> {
  const { config, warnings } = await loadConfig(loaderInput(command));
  if (config.host.namespace === '')
    return usageError(
      'the host namespace of the virtual cluster is not known; set --host-namespace or endpointSyncer.host.namespace',
    );
  reportProblems(warnings);
  return translateAll(withStandardInput(args), config, options);
}

function withStandardInput(args: readonly string[]): readonly string[] {
  if (!args.includes('-')) return args;
  const lines = readFileSync(0, 'utf8').split('\n');
  const typed = lines.map((line) => line.trim()).filter((line) => line !== '');
  return args.flatMap((arg) => (arg === '-' ? typed : [arg]));
}

/** An invalid argument fails the whole command; a name without a translation fails alone, and the others are printed. */
function translateAll(args: readonly string[], config: Config, options: NamesOptions): number {
  const translator = createTranslators(config).names;
  const translate = options.reverse ? translateHostName : translateVirtualName;
  const kind = knownKind(options.kind);
  if (!KIND.test(kind.kind))
    return usageError(`--kind must be the name of a kind, such as Secret, found "${kind.kind}"`);
  const results = args.map((text) => translate(text, kind, translator));
  const problems = results.flatMap(({ problem }) => problem ?? []);
  for (const problem of problems) tell(`error: ${problem}`);
  if (problems.length > 0) return 2;
  if (kind.scope === 'unknown' && !isNamedBy(config, kind.kind)) {
    const hint = similarKind(kind.kind) || '; it is treated as a custom resource';
    tell(`note: kind "${kind.kind}" is not known here${hint}`);
  }
  for (const { note, miss } of results) {
    if (note !== undefined) tell(`note: ${note}`);
    if (miss !== undefined) tell(`error: ${miss}`);
  }
  const rows = results.flatMap((result) => result.rows.map((row) => listedRow(row, options)));
  const heading = ['KIND', 'VIRTUAL', 'HOST', 'SHORTNAME'];
  process.stdout.write(formatListing({ heading, rows }, options.output));
  return results.some(({ miss }) => miss !== undefined) ? 1 : 0;
}

function listedRow(row: NameRow, { reverse = false }: NamesOptions): ListedRow {
  const { kind, virtual, host, shortName } = row;
  const cells = [kind, keyOf(virtual), keyOf(host), shortName || '-'];
  const json = { kind, virtual: { ...virtual }, host: { ...host }, shortName };
  return { cells, name: keyOf(reverse ? virtual : host), json };
}

type NameRow = ReturnType<typeof rowOf>;

/** `problem`: the argument is invalid; `miss`: the name has no translation; `note`: a remark on the translation. One line each. */
interface NameTranslation {
  readonly rows: readonly NameRow[];
  readonly problem?: string;
  readonly miss?: string;
  readonly note?: string;
}

/** The Endpoints and the Service of the API server itself, which the host has too. */
const NEVER_SYNCED = 'default/kubernetes';

/** Names of these kinds may be any path segment (`system:node`). */
const PATH_NAMED = new Set(['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']);

function translateVirtualName(text: string, kind: KnownKind, names: NameTranslator): NameTranslation {
  const parsed = parseName(text, kind);
  if ('problem' in parsed) return { rows: [], problem: parsed.problem };
  const { namespace, name } = parsed;
  const host = namespace === '' ? clusterScopedHost(name, kind, names) : names.toHost(parsed);
  if (host === undefined) {
    const miss =
      `${text}: namespace "${namespace}" has no entry in sync.toHost.namespaces.mappings.byName and mappingsOnly is set, ` +
      'so it has no name on the host';
    return { rows: [], miss };
  }
  const row = rowOf(kind, { virtual: parsed, host }, names);
  const own = SYNCABLE_RESOURCES.find((resource) => resource.kind === kind.kind);
  const group = kind.group ?? own?.group ?? '';
  const reference = names.referenceToHost(parsed, { group, kind: kind.kind });
  const isOther = namespace !== '' && reference !== undefined && keyOf(reference) !== keyOf(host);
  const written = isOther ? `a reference patch writes "${reference.name}"; ` : '';
  const isNeverSynced = keyOf(parsed) === NEVER_SYNCED && own !== undefined;
  if (!isNeverSynced && !isOther) return { rows: [row] };
  const what = isNeverSynced
    ? 'it is never synced, and the row shows the name that the naming rule would produce'
    : `"${host.name}" is the name of the copy that vCluster syncs`;
  return { rows: [row], note: `${text}: ${written}${what}` };
}

/** Every virtual name that translates to a host name as typed. A name without a namespace is in the host namespace. */
function translateHostName(text: string, kind: KnownKind, names: NameTranslator): NameTranslation {
  const isBare = !text.includes('/');
  const full = isBare && kind.scope === 'namespaced' ? `${names.hostNamespace}/${text}` : text;
  const host = parseName(full, kind);
  if ('problem' in host) return { rows: [], problem: host.problem };
  const virtuals =
    host.namespace === '' ? clusterScopedVirtual(host.name, kind, names) : names.toVirtualCandidates(host);
  const rows = virtuals.map((virtual) => rowOf(kind, { virtual, host }, names));
  return rows.length > 0 ? { rows } : { rows, miss: `${full}: ${reasonForNone(host, names)}` };
}

function parseName(text: string, { kind, scope }: KnownKind): NamespacedName | { readonly problem: string } {
  const parts = text.split('/');
  const isNamespaced = scope === 'namespaced' || (scope === 'unknown' && parts.length > 1);
  if (parts.length !== (isNamespaced ? 2 : 1)) {
    const rule = isNamespaced
      ? 'namespaced, write NAMESPACE/NAME'
      : 'cluster-scoped, write NAME without a namespace';
    return { problem: `"${text}": ${kind} objects are ${rule}` };
  }
  const [namespace = '', name = ''] = isNamespaced ? parts : ['', text];
  if (isNamespaced && !isDnsLabel(namespace)) {
    const rule = `lower-case letters, digits and "-", at most 63, starting and ending with a letter or a digit`;
    return { problem: `"${text}": "${namespace}" is not the name of a namespace (${rule})` };
  }
  if (!isNameOf(kind, name)) {
    const rule = `lower-case letters, digits, "-" and ".", at most ${NAME_LENGTH_MAX}, starting and ending with a letter or a digit`;
    return { problem: `"${text}": "${name}" is not the name of an object (${rule})` };
  }
  return { namespace, name };
}

function isNameOf(kind: string, name: string): boolean {
  if (name === '' || name.length > NAME_LENGTH_MAX) return false;
  if (PATH_NAMED.has(kind)) return name !== '.' && name !== '..' && !/[/%\s]/.test(name);
  return kind === 'Namespace' ? isDnsLabel(name) : isDnsSubdomain(name);
}

/** A Namespace follows the namespace mapping, if there is one; every other kind follows the cluster-scoped rule. */
function clusterScopedHost(
  name: string,
  { kind }: KnownKind,
  names: NameTranslator,
): NamespacedName | undefined {
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

/** `shortName`: the name that a reference patch writes; empty for cluster-scoped kinds, which cannot be referenced. */
function rowOf(
  { kind }: KnownKind,
  { virtual, host }: { readonly virtual: NamespacedName; readonly host: NamespacedName },
  names: NameTranslator,
) {
  const short = virtual.namespace === '' ? undefined : names.shortToHost(virtual);
  return { kind, virtual, host, shortName: short?.name ?? '' };
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
