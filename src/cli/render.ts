/** `render`: what a sync would write, from files, without a cluster. */

import { type Command, Option } from 'commander';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/types.ts';
import { PatchError } from '../kube/errors.ts';
import { objectKey, type KubeObject } from '../kube/object.ts';
import { systemClock } from '../lib/clock.ts';
import type { JsonObject } from '../lib/json.ts';
import { silentLogger } from '../observe/logger.ts';
import { compilePatches } from '../patch/compile.ts';
import { createSandbox } from '../sandbox/sandbox.ts';
import { renderToHost, renderToVirtual, type Rendered, type RenderWorld } from '../sync/render.ts';
import { kindPolicy } from '../sync/reference-kinds.ts';
import { createOfflineReferences } from '../sync/references/offline-references.ts';
import { createTranslation, createTranslators } from '../sync/translation.ts';
import { addConfigOptions, loaderInput } from './config-options.ts';
import { reportConfigError } from './config-report.ts';
import { readObjects } from './object-files.ts';
import { printObject } from './one-object.ts';
import { describePatchError } from './patch-failure.ts';

interface RenderFlags {
  readonly filename: string[];
  readonly host: string[];
  readonly virtual: string[];
  readonly reverse?: boolean;
  readonly output: string;
}

export function define(command: Command, exit: (code: number) => void): void {
  addConfigOptions(command);
  command
    .requiredOption(
      '-f, --filename <path...>',
      'virtual objects: files, folders or - (with --reverse: host objects)',
    )
    .option('--host <path...>', 'host objects that exist already', [])
    .option('--virtual <path...>', 'with --reverse: the virtual objects that exist', [])
    .option('--reverse', 'host to virtual')
    .addOption(new Option('-o, --output <format>', 'yaml or json').choices(['yaml', 'json']).default('yaml'))
    .action(async (flags: RenderFlags) => exit(await render(command, flags)));
}

async function render(command: Command, flags: RenderFlags): Promise<number> {
  try {
    const { config } = await loadConfig(loaderInput(command));
    const [given, host, virtual] = await Promise.all(
      [flags.filename, flags.host, flags.virtual].map(readObjects),
    );
    if (!given?.some(({ kind }) => kind === 'Endpoints'))
      process.stderr.write(
        `note: no Endpoints in ${flags.filename.join(', ')}: there is nothing to render\n`,
      );
    const world = flags.reverse
      ? { host: inNamespace(given, config.host.namespace), virtual: inNamespace(virtual, 'default') }
      : { virtual: inNamespace(given, 'default'), host: inNamespace(host, config.host.namespace) };
    const rendered = await renderWorld(world, config, flags.reverse === true);
    print(rendered, flags.output);
    return rendered.some(({ kind }) => kind === 'failed') ? 1 : 0;
  } catch (error) {
    return reportConfigError(error);
  }
}

async function renderWorld(world: RenderWorld, config: Config, isReverse: boolean): Promise<Rendered[]> {
  if (!config.sync.endpoints.enabled) {
    process.stderr.write('sync.toHost.endpoints.enabled is false: nothing is synced\n');
    return [];
  }
  const compiled = compilePatches(config.sync.endpoints.patches);
  await using sandbox = await createSandbox({
    programs: compiled.programs,
    vcluster: { name: config.name, namespace: config.host.namespace, config: config.vclusterConfig },
    namespaces: config.sync.namespaces,
    limits: config.sandbox,
    clock: systemClock,
    logger: silentLogger,
  });
  const owner = config.owner && { ...config.owner, uid: uidOf(world, config.owner) };
  const { lookup, imports } = createOfflineReferences(world, {
    policy: kindPolicy(config.sync),
    rules: { vcluster: config.name, kubeconfigSecret: config.virtual.secret },
    forge: { ...createTranslators(config), owner },
  });
  const translation = createTranslation({ config, compiled, evaluator: sandbox, lookup });
  const options = { ...translation, owner, imports, decide: { requireService: config.requireService } };
  return await (isReverse ? renderToVirtual(world, options) : renderToHost(world, options));
}

/** Without a cluster the owner's uid is known only where the owner is among the host objects. */
function uidOf({ host }: RenderWorld, { kind, name }: { kind: string; name: string }): string {
  return host.find((object) => object.kind === kind && object.metadata.name === name)?.metadata.uid ?? '';
}

/** Objects without a namespace are in the one that kubectl would use. */
function inNamespace(objects: readonly KubeObject[] = [], namespace: string): KubeObject[] {
  return objects.map((object) =>
    object.metadata.namespace || object.kind === 'Namespace'
      ? object
      : { ...object, metadata: { ...object.metadata, namespace } },
  );
}

function print(rendered: readonly Rendered[], output: string): void {
  const objects = rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
  const json = objects as unknown as JsonObject[]; // Kubernetes objects are JSON
  const text =
    output === 'json'
      ? printObject({ apiVersion: 'v1', kind: 'List', items: json }, 'json')
      : json.map((object) => printObject(object, 'yaml')).join('---\n');
  process.stdout.write(text);
  for (const one of rendered) {
    if (one.kind === 'skipped') process.stderr.write(`skipped Endpoints ${one.key}: ${one.reason}\n`);
    if (one.kind === 'refused') process.stderr.write(`skipped ${one.what}: ${one.reason}\n`);
    if (one.kind === 'elsewhere') {
      const what = `${one.object.kind ?? ''} ${objectKey(one.object)}`;
      process.stderr.write(
        `note: ${what} is imported into the other cluster, --reverse turns the view round\n`,
      );
    }
    if (one.kind === 'failed') process.stderr.write(`failed Endpoints ${one.key}: ${describe(one.error)}\n`);
  }
}

function describe(error: unknown): string {
  if (error instanceof PatchError) return describePatchError(error);
  return error instanceof Error ? error.message : String(error);
}
