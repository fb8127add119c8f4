/** `patch`: only the patches, on any one object, without a cluster. */

import { formatOption } from '../output/listing.ts';
import type { Command } from 'commander';
import { configFile, readConfigText } from '../config/files.ts';
import { configWithoutFile, loadConfig } from '../config/load.ts';
import { parsePatchFile } from '../../syncer/config/patch-file.ts';
import { problemOf } from '../../config-file/source-file.ts';
import type { Config } from '../../syncer/config/config.ts';
import type { PatchConfig } from '../../syncer/patch/patch-schema.ts';
import { ConfigError } from '../../base/errors.ts';
import { systemClock } from '../../base/clock.ts';
import { textAt, type JsonObject } from '../../base/json.ts';
import { createLogger } from '../../base/logger.ts';
import { endpointsKind } from '../../syncer/kinds/endpoints.ts';
import { patchedKinds, validationOf } from '../../syncer/kinds/synced-kinds.ts';
import { compilePatches } from '../../syncer/patch/compile.ts';
import { createPatchPipeline } from '../../syncer/patch/pipeline.ts';
import type { Direction, PatchedObject } from '../../syncer/patch/types.ts';
import { byNewestVersion } from '../../syncer/patch/validate-object.ts';
import { asObject, isOfKind } from '../../kube/object.ts';
import { plainText } from '../../base/excerpt.ts';
import { createSandbox } from '../../expressions/sandbox.ts';
import type { ObjectContext } from '../../expressions/types.ts';
import { OBJECT_NAMESPACE } from '../../syncer/translate/bookkeeping.ts';
import type { NameTranslator } from '../../syncer/translate/types.ts';
import { pipelineOptions, sandboxSettings } from '../../syncer/translation.ts';
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
  const result = await apply(settings, flags, object, { hostObject, virtualObject });
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

interface Settings {
  readonly config: Config;
  /** Those in `--patches`; undefined: those that the configuration has for the kind of the object. */
  readonly patches: readonly PatchConfig[] | undefined;
}

/** With `--patches` the configuration gives only the names and limits. */
async function readSettings(command: Command, flags: PatchFlags): Promise<Settings> {
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

async function apply(
  settings: Settings,
  flags: PatchFlags,
  object: JsonObject,
  { hostObject, virtualObject }: ObjectContext,
): Promise<PatchedObject> {
  const config = withHostNamespace(settings.config);
  const kind = patchedKinds(config).find(({ resource }) => isOfKind(asObject(object), resource))?.key;
  // An object of a kind without patches of its own gets those of Endpoints.
  const patches = settings.patches ?? config.sync[kind ?? 'endpoints'].patches;
  const compiled = compilePatches(patches, 0, config.patches.missingPaths);
  await using sandbox = await createSandbox({
    ...sandboxSettings(config),
    programs: compiled.programs,
    clock: systemClock,
    logger: await createLogger({ level: 'error', format: 'json' }),
  });
  const options = pipelineOptions(config, endpointsKind, {
    compiled,
    evaluator: sandbox,
    lookup: () => undefined,
  });
  const pipeline = createPatchPipeline({
    ...options,
    // Only the patches run, so Pod references have not been translated before.
    references: { ...options.references, skipPodTargetRefs: false },
    // The result is that of all patches, or an error.
    onError: 'object',
    validate: byNewestVersion(validationOf(object, config)),
  });
  const { names } = options.references;
  const direction: Direction = flags.reverse ? 'toVirtual' : 'toHost';
  const objectNamespace =
    (direction === 'toHost' ? namespaceOf(object) : virtualNamespace(object, virtualObject, names)) ??
    flags.namespace ??
    'default';
  // Awaited here, because the sandbox is closed on return.
  const patched = await pipeline.apply(direction, object, { hostObject, virtualObject, objectNamespace });
  const [unresolved] = patched.unresolved;
  if (unresolved !== undefined) throw unresolved.error;
  return patched;
}

/** The virtual namespace of a host object, from its annotations, else from its host namespace. */
function virtualNamespace(
  object: JsonObject,
  virtualObject: JsonObject | null,
  names: NameTranslator,
): string | undefined {
  const recorded = textAt(object, 'metadata', 'annotations', OBJECT_NAMESPACE);
  const host = namespaceOf(object);
  return namespaceOf(virtualObject) ?? (recorded || (host && names.namespaceToVirtual(host)));
}

function namespaceOf(object: JsonObject | null): string | undefined {
  return textAt(object, 'metadata', 'namespace') || undefined;
}
