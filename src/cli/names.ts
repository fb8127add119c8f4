/** `names`: translates names between the virtual cluster and the host. */

import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { loadConfig } from './config/load.ts';
import type { Config } from '../syncer/config/config.ts';
import { keyOf } from '../kube/object.ts';
import { translateNames } from '../syncer/rehearsal/object-names.ts';
import { addConfigOptions, loaderInput } from './config-options.ts';
import { type ExitWith, reportProblems, usageError, tell } from './output/terminal.ts';
import { formatListing, outputOption, type ListedRow } from './output/listing.ts';

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
  const { reverse: isReverse = false, output } = options;
  const { kind, problems, note, results } = translateNames(config, args, { kind: options.kind, isReverse });
  for (const problem of problems) tell(`error: ${problem}`);
  if (problems.length > 0) return 2;
  for (const one of [{ note }, ...results]) {
    if (one.note !== undefined) tell(`note: ${one.note}`);
    if ('why' in one) tell(`error: ${one.why}`);
  }
  const rows = results.flatMap(({ names: found }) =>
    found.map(({ virtual, host, shortName }): ListedRow => ({
      cells: [kind, keyOf(virtual), keyOf(host), shortName || '-'],
      name: keyOf(isReverse ? virtual : host),
      json: { kind, virtual: { ...virtual }, host: { ...host }, shortName },
    })),
  );
  const heading = ['KIND', 'VIRTUAL', 'HOST', 'SHORTNAME'];
  process.stdout.write(formatListing({ heading, rows }, output));
  return results.some(({ why }) => why !== undefined) ? 1 : 0;
}
