/** `names`: translates names between the virtual cluster and the host. */

import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/types.ts';
import { keyOf } from '../../kube/object.ts';
import { createNameTranslator } from '../../syncer/translate/names/name-translator.ts';
import type { NameTranslator } from '../../syncer/translate/types.ts';
import { addConfigOptions, loaderInput } from '../configuration/config-options.ts';
import { reportConfigError, reportProblems } from '../output/config-report.ts';
import { formatListing, outputOption, type ListedRow } from '../output/listing.ts';
import { isNamedBy } from './configured-kind.ts';
import { knownKind, similarKind } from './kind-scope.ts';
import { translateHostName, translateVirtualName, type NameRow } from './name-rows.ts';

/** A kind, a resource (`gadgets`), or a resource with its group (`gadgets.example.com`). */
const KIND = /^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9.-]+)?$/u;

interface NamesOptions {
  readonly kind: string;
  readonly reverse?: boolean;
  readonly output: string;
}

export function define(command: Command, exit: (code: number) => void): void {
  command
    .argument(
      '<names...>',
      'NAMESPACE/NAME, or NAME of a cluster-scoped kind; - reads one name per line from standard input',
    )
    .option('-k, --kind <kind>', 'kind of the objects', 'Endpoints')
    .option('-r, --reverse', 'translate host names to virtual names')
    .addOption(outputOption());
  addConfigOptions(command, ['name', 'host.namespace']);
  command.action(async (args: string[], options: NamesOptions) => {
    const config = await configFor(command);
    exit(typeof config === 'number' ? config : translateAll(withStandardInput(args), config, options));
  });
}

/** The configuration, or an exit code if it is invalid. */
async function configFor(command: Command): Promise<Config | number> {
  try {
    const { config, warnings } = await loadConfig(loaderInput(command));
    if (config.host.namespace !== '') {
      reportProblems(warnings);
      return config;
    }
    process.stderr.write(
      'error: the host namespace of the virtual cluster is not known; set --host-namespace or endpointSyncer.host.namespace\n',
    );
    return 2;
  } catch (error) {
    return reportConfigError(error);
  }
}

function withStandardInput(args: readonly string[]): readonly string[] {
  if (!args.includes('-')) return args;
  const lines = readFileSync(0, 'utf8').split('\n');
  const typed = lines.map((line) => line.trim()).filter((line) => line !== '');
  return args.flatMap((arg) => (arg === '-' ? typed : [arg]));
}

/** An invalid argument fails the whole command; a name without a translation fails alone, and the others are printed. */
function translateAll(args: readonly string[], config: Config, options: NamesOptions): number {
  const names = translatorOf(config);
  const translate = options.reverse ? translateHostName : translateVirtualName;
  const kind = knownKind(options.kind);
  if (!KIND.test(kind.kind)) {
    process.stderr.write(`error: --kind must be the name of a kind, such as Secret, found "${kind.kind}"\n`);
    return 2;
  }
  const results = args.map((text) => translate(text, kind, names));
  const problems = results.flatMap(({ problem }) => problem ?? []);
  for (const problem of problems) process.stderr.write(`error: ${problem}\n`);
  if (problems.length > 0) return 2;
  if (kind.scope === 'unknown' && !isNamedBy(config, kind.kind)) {
    const hint = similarKind(kind.kind) || '; it is treated as a custom resource';
    process.stderr.write(`note: kind "${kind.kind}" is not known here${hint}\n`);
  }
  for (const { note, miss } of results) {
    if (note !== undefined) process.stderr.write(`note: ${note}\n`);
    if (miss !== undefined) process.stderr.write(`error: ${miss}\n`);
  }
  const rows = results.flatMap((result) => result.rows.map((row) => listedRow(row, options)));
  process.stdout.write(
    formatListing({ heading: ['KIND', 'VIRTUAL', 'HOST', 'SHORTNAME'], rows }, options.output),
  );
  return results.some(({ miss }) => miss !== undefined) ? 1 : 0;
}

function translatorOf(config: Config): NameTranslator {
  return createNameTranslator({
    vcluster: config.name,
    hostNamespace: config.host.namespace,
    mode: config.sync.namespaces,
    referenceNaming: config.references.naming,
  });
}

function listedRow(row: NameRow, { reverse = false }: NamesOptions): ListedRow {
  const { kind, virtual, host, shortName } = row;
  return {
    cells: [kind, keyOf(virtual), keyOf(host), shortName || '-'],
    name: keyOf(reverse ? virtual : host),
    json: { kind, virtual: { ...virtual }, host: { ...host }, shortName },
  };
}
