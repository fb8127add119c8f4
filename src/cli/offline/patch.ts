/** `patch`: only the patches, on any one object, without a cluster. */

import { formatOption } from '../output/listing.ts';
import type { Command } from 'commander';
import { configFile, readConfigText } from '../config/files.ts';
import { configWithoutFile, loadConfig } from '../config/load.ts';
import { parsePatchFile, patchObject } from '../../syncer/rehearsal/patches-alone.ts';
import { problemOf } from '../../config-file/source-file.ts';
import { ConfigError } from '../../base/errors.ts';
import { asObject } from '../../kube/object.ts';
import { plainText } from '../../base/excerpt.ts';
import { withHostNamespace, addConfigOptions, loaderInput } from '../config-options.ts';
import { type ExitWith, reportProblems, tell } from '../output/terminal.ts';
import { printObject, readObject } from '../output/objects.ts';
import { warnOfOlder } from '../output/older-versions.ts';

const FIELDS = [
  'name',
  'host.namespace',
  'patches.missingPaths',
  'references.naming',
  'sandbox.expressionTimeout',
  'sandbox.batchTimeout',
  'sandbox.memory',
  'sandbox.memoBytes',
];
/** Used if no configuration sets a name; few patches read it. */
const DEFAULT_NAME = 'my-vcluster';

interface PatchFlags {
  readonly patches?: string;
  readonly filename: string;
  readonly reverse?: boolean;
  readonly virtualObject?: string;
  readonly hostObject?: string;
  readonly namespace?: string;
  readonly output: 'yaml' | 'json';
}

export function define(command: Command, exitWith: ExitWith): void {
  addConfigOptions(command, FIELDS);
  command
    .option(
      '-p, --patches <file>',
      'file with a list of patches, or with {patches: […]}; replaces the patches of --config',
    )
    .option('-f, --filename <file>', 'file with the object, or - for standard input', '-')
    .option('--reverse', 'host to virtual: run reverseExpression, translate references and labels back')
    .option(
      '--virtual-object <file>',
      'context.virtualObject, by default the object itself; with --reverse, values that are not synced back come from it',
    )
    .option(
      '--host-object <file>',
      'context.hostObject, with --reverse by default the object itself; values that are not synced to the host come from it',
    )
    .option('--namespace <name>', 'virtual namespace of an object without one')
    .addOption(formatOption(['yaml', 'json']))
    .action((flags: PatchFlags) => exitWith(() => patch(command, flags)));
}

async function patch(command: Command, flags: PatchFlags): Promise<number> {
  const settings = await readSettings(command, flags);
  const object = await readObject(flags.filename);
  const [ofVirtual, ofHost] = flags.reverse === true ? [null, object] : [object, null];
  const virtualObject = flags.virtualObject === undefined ? ofVirtual : await readObject(flags.virtualObject);
  const hostObject = flags.hostObject === undefined ? ofHost : await readObject(flags.hostObject);
  const result = await patchObject(object, {
    config: withHostNamespace(settings.config),
    patches: settings.patches,
    direction: flags.reverse === true ? 'toVirtual' : 'toHost',
    context: { hostObject, virtualObject },
    namespace: flags.namespace,
  });
  for (const { patchIndex, path, apiVersion, kind } of result.notAllowed) {
    const where = `patches[${patchIndex}] at ${plainText(path)}`;
    tell(
      `${where}: unchanged, because the configuration allows no references to ${plainText(`${apiVersion} ${kind}`)}`,
    );
  }
  process.stdout.write(printObject(result.object, flags.output));
  if (flags.reverse !== true) warnOfOlder(asObject(result.object));
  return 0;
}

/** With `--patches` the configuration gives only the names and limits. */
async function readSettings(command: Command, flags: PatchFlags) {
  const input = loaderInput(command);
  const file = flags.patches;
  if (file === undefined && configFile(input) === undefined) {
    throw new ConfigError([problemOf('', 'no patches: use --patches FILE or --config FILE')]);
  }
  if (file === undefined) {
    const { config, warnings } = await loadConfig(input);
    reportProblems(warnings);
    return { config, patches: undefined };
  }
  const { patches, problems } = parsePatchFile({ text: await readConfigText(file), file });
  if (problems.some(({ severity }) => severity === 'error')) throw new ConfigError(problems);
  reportProblems(problems);
  if (input.file !== undefined) return { config: (await loadConfig(input)).config, patches };
  return { config: configWithoutFile(input, { name: DEFAULT_NAME }), patches };
}
