/** `names`: translates names between the virtual cluster and the host. */

import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { loadConfig } from './config/load.ts';
import type { Config } from '../syncer/config/config.ts';
import { keyOf, type NamespacedName } from '../kube/object.ts';
import { ObjectNames } from '../syncer/rehearsal/object-names.ts';
import { addConfigOptions, loaderInput } from './config-options.ts';
import { type ExitWith, reportProblems, usageError, tell } from './output/terminal.ts';
import { formatListing, outputOption, type ListedRow } from './output/listing.ts';
import { isNamedBy, knownKind, similarKind, type KnownKind } from './kind-scope.ts';
import { isDnsLabel, isDnsSubdomain, NAME_LENGTH_MAX } from '../kube/names.ts';

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
  const kind = knownKind(options.kind);
  if (!KIND.test(kind.kind))
    return usageError(`--kind must be the name of a kind, such as Secret, found "${kind.kind}"`);
  const translation = { config, isReverse: options.reverse === true, names: new ObjectNames(config) };
  const results = args.map((text) => translated(text, kind, translation));
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
  const rows = results.flatMap((result) => result.rows.map((row) => listedRow(kind, row, options)));
  const heading = ['KIND', 'VIRTUAL', 'HOST', 'SHORTNAME'];
  process.stdout.write(formatListing({ heading, rows }, options.output));
  return results.some(({ miss }) => miss !== undefined) ? 1 : 0;
}

function listedRow(
  { kind }: KnownKind,
  { virtual, host, shortName }: NameTranslation['rows'][number],
  { reverse = false }: NamesOptions,
): ListedRow {
  const cells = [kind, keyOf(virtual), keyOf(host), shortName || '-'];
  const json = { kind, virtual: { ...virtual }, host: { ...host }, shortName };
  return { cells, name: keyOf(reverse ? virtual : host), json };
}

/** `problem`: the argument is invalid; `miss`: the name has no translation; `note`: a remark on the translation. One line each. */
interface NameTranslation {
  readonly rows: ReturnType<ObjectNames['onHost']>['names'];
  readonly problem?: string;
  readonly miss?: string;
  readonly note?: string;
}

/** A host name without a namespace is in the host namespace. */
function translated(
  text: string,
  kind: KnownKind,
  { config, isReverse, names }: { config: Config; isReverse: boolean; names: ObjectNames },
): NameTranslation {
  const isBare = isReverse && !text.includes('/') && kind.scope === 'namespaced';
  const full = isBare ? `${config.host.namespace}/${text}` : text;
  const parsed = parseName(full, kind);
  if ('problem' in parsed) return { rows: [], problem: parsed.problem };
  const { names: rows, why, note } = isReverse ? names.inVirtual(kind, parsed) : names.onHost(kind, parsed);
  return {
    rows,
    ...(why !== undefined && { miss: `${full}: ${why}` }),
    ...(note !== undefined && { note: `${full}: ${note}` }),
  };
}

/** Names of these kinds may be any path segment (`system:node`). */
const PATH_NAMED = new Set(['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']);

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
