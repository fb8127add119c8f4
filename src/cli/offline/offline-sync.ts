/** Syncs objects from files, without a cluster: one configuration and its sandbox, for any number of sets of objects. */

import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/logger.ts';
import type { Config } from '../../config/types.ts';
import { SERVICES, type KubeObject } from '../../kube/object.ts';
import type { Lister } from '../../kube/types.ts';
import type { SyncedKind } from '../../syncer/kinds/kind.ts';
import {
  compileKinds,
  syncedKinds,
  type CompiledKind,
  type VirtualCache,
} from '../../syncer/kinds/synced-kinds.ts';
import { compilePatches, type CompiledPatches } from '../../syncer/patch/compile.ts';
import { createPatchPipeline, type PipelineOptions } from '../../syncer/patch/pipeline.ts';
import type { ReferenceLookup } from '../../syncer/patch/types.ts';
import { foreignServices } from '../../syncer/reconcile/decide/observer.ts';
import { createOfflineReferences } from '../../syncer/references/offline-references.ts';
import { kindPolicy } from '../../syncer/references/kinds/referenced-kind.ts';
import { refusalRules } from '../../syncer/references/decide/refusals.ts';
import type { RenderOptions, RenderWorld } from '../../syncer/render.ts';
import { createSandbox, type Sandbox } from '../../syncer/sandbox/sandbox.ts';
import type { Evaluator, Program } from '../../syncer/sandbox/types.ts';
import { staticLister } from '../objects/static-lister.ts';
import type { OwnerReference } from '../../syncer/translate/forge.ts';
import { createTranslators, pipelineOptions, sandboxSettings } from '../../syncer/translation.ts';

export interface OfflineSync extends AsyncDisposable {
  readonly config: Config;
  /** The synced kinds with their patches; the sandbox has all their programs. */
  readonly kinds: readonly CompiledKind[];
  /** The options of the patch pipeline of a synced kind that finds the names of referenced objects with `lookup`. */
  pipelineOptionsFor(kind: SyncedKind, lookup: ReferenceLookup): PipelineOptions;
  /** The options to sync these objects, for each kind that is synced: names, patches, references. */
  readonly optionsForKinds: (world: RenderWorld) => readonly OfflineOptions[];
  /** The synced kinds, for these virtual objects. */
  kindsAmong(virtual: readonly KubeObject[]): readonly SyncedKind[];
  /** A sandbox for other programs under the same limits and the same `context.vcluster`. */
  createSandbox(programs: readonly Program[]): Promise<Sandbox>;
}

const NO_PATCHES = compilePatches([]);

export interface OfflineOptions extends RenderOptions {
  /** The options of `pipeline`. */
  readonly pipelineOptions: PipelineOptions;
}

export async function openOfflineSync(config: Config): Promise<OfflineSync> {
  const open = (programs: readonly Program[]): Promise<Sandbox> =>
    createSandbox({
      ...sandboxSettings(config),
      programs,
      clock: systemClock,
      logger: silentLogger,
    });
  const kinds = compileKinds(syncedKinds(config));
  const sandbox = await open(kinds.flatMap(({ patches }) => patches.programs));
  return {
    config,
    kinds,
    createSandbox: open,
    pipelineOptionsFor: (kind, lookup) => {
      const patches = kinds.find((one) => one.kind.resource === kind.resource)?.patches ?? NO_PATCHES;
      return pipelineOptions({ config, kind, compiled: patches, evaluator: sandbox, lookup });
    },
    kindsAmong: (virtual) => kindsAmong(config, virtual),
    optionsForKinds: (world) =>
      kindsAmong(config, world.virtual).map((kind, at) =>
        offlineOptions({
          config,
          kind,
          compiled: kinds[at]?.patches ?? NO_PATCHES,
          evaluator: sandbox,
          world,
        }),
      ),
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  };
}

/** The synced kinds, in the order of `syncedKinds`, each knowing the virtual objects of the others. */
export function kindsAmong(config: Config, virtual: readonly KubeObject[]): readonly SyncedKind[] {
  const caches = new Map<string, VirtualCache>();
  const kinds = syncedKinds(config, caches).map(({ kind }) => kind);
  for (const { resource, indexes } of kinds) {
    const objects = virtual.filter(({ kind }) => kind === resource.kind);
    caches.set(resource.plural, staticLister(resource, objects, indexes));
  }
  return kinds;
}

export interface OfflineInput {
  readonly config: Config;
  readonly kind: SyncedKind;
  readonly compiled: CompiledPatches;
  readonly evaluator: Evaluator;
  readonly world: RenderWorld;
}

/** The render options of one kind for these objects: names, patches, references. */
export function offlineOptions({ config, kind, compiled, evaluator, world }: OfflineInput): OfflineOptions {
  const translators = createTranslators(config);
  const owner = ownerIn(world, config);
  const { lookup, imports } = createOfflineReferences(world, {
    policy: kindPolicy(config.sync),
    rules: refusalRules(config),
    forge: { ...translators, owner },
  });
  const options = pipelineOptions({ config, kind, compiled, evaluator, lookup });
  return {
    ...translators,
    kind,
    owner,
    foreignService: foreignServices(kind, translators.names, sharedServices(config, world)),
    imports,
    pipeline: createPatchPipeline(options),
    pipelineOptions: options,
    decide: { requireService: config.requireService },
  };
}

/** The Services among the host objects, if host namespaces are shared with others. */
function sharedServices({ sync }: Config, { host }: RenderWorld): Lister | undefined {
  if (sync.namespaces.kind === 'single') return undefined;
  return staticLister(
    SERVICES,
    host.filter(({ kind }) => kind === SERVICES.kind),
  );
}

/** Without a cluster the owner's uid is known only where the owner is among the host objects. The default owner need not exist. */
function ownerIn({ host }: RenderWorld, { owner }: Config): OwnerReference | undefined {
  if (owner === undefined) return undefined;
  const { apiVersion, kind, name, isOptional } = owner;
  const found = host.find((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined && isOptional) return undefined;
  return { apiVersion, kind, name, uid: found?.metadata.uid ?? '' };
}

/** Gives objects without a namespace this one, as kubectl does. */
export function inNamespace(objects: readonly KubeObject[], namespace: string): KubeObject[] {
  return objects.map((object) =>
    object.metadata.namespace || object.kind === 'Namespace'
      ? object
      : { ...object, metadata: { ...object.metadata, namespace } },
  );
}
