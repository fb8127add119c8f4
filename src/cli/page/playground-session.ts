/** One run of the page: patches and objects as text in, the synced objects, the trace and every problem out. */

import { systemClock } from '../../base/clock.ts';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import { silentLogger } from '../../base/logger.ts';
import type { Config, PatchConfig } from '../../config/types.ts';
import { asJson, objectKey, type KubeObject } from '../../kube/object.ts';
import { syncedKinds } from '../../syncer/kinds/synced-kinds.ts';
import { compilePatches, type CompiledPatches } from '../../syncer/patch/compile.ts';
import {
  tracingPipeline,
  type PatchTrace,
  type TracedMatch,
  type TracedPatch,
} from '../../syncer/patch/trace.ts';
import { renderToHost, renderToVirtual, type RenderWorld } from '../../syncer/render.ts';
import { createSandbox, type Sandbox } from '../../syncer/sandbox/sandbox.ts';
import { sandboxSettings } from '../../syncer/translation.ts';
import {
  kindsAmong,
  offlineOptions,
  type OfflineInput,
  type OfflineOptions,
} from '../offline/offline-sync.ts';
import { renderKinds } from '../offline/render-kinds.ts';
import { patchPathsOf } from './object-paths.ts';
import { readEditedConfig } from './playground-config.ts';
import { placed, readEditor, readInput, type RunInput } from './playground-input.ts';
import { describeRendered, printAll, unsyncedNotes } from './playground-result.ts';

/** The trace of one object, and the object that the patches saw. */
interface ObjectTrace extends JsonObject {
  /** `EndpointSlice team-a/web-x-shop-x-my-vcluster` */
  object: string;
  patches: JsonValue;
}

/** Keeps one sandbox for all runs of the same settings, so that most runs start no process. Runs are one after another. */
export class PlaygroundSession implements AsyncDisposable {
  readonly #config: Config;
  #sandbox: Sandbox | undefined;
  #sandboxSettings = '';
  #nextProgramId = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** `config` is for patches without a configuration around them, which replace its own. */
  constructor(config: Config) {
    this.#config = config;
  }

  /**
   * `{problems: [{editor, line, column, message, severity}], patchList, original, result, plainResult, imports, notes, traces, paths}`:
   * texts are YAML, `patchList` is the key of `sync.toHost` for a list of patches (null: the editor has a configuration), `original` is
   * the virtual object, `plainResult` is without bookkeeping. With problems of severity `error` nothing is run.
   */
  run(body: JsonObject): Promise<JsonValue> {
    const result = this.#last.then(() => this.#run(readInput(body)));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last;
    await this.#sandbox?.[Symbol.asyncDispose]();
  }

  async #run(input: RunInput): Promise<JsonValue> {
    const virtual = readEditor(input.virtual, 'default');
    const hostNamespace = this.#config.host.namespace;
    const given = input.isReverse ? readEditor(input.host, hostNamespace) : virtual;
    const edited = readEditedConfig(input.patches, given.objects, this.#config);
    const host = readEditor(input.host, edited.config?.host.namespace ?? hostNamespace);
    const problems = [
      ...placed('patches', edited.problems),
      ...placed('virtual', virtual.problems),
      ...placed('host', host.problems),
    ];
    const { config, patchList = null } = edited;
    if (config === undefined || problems.some(({ severity }) => severity === 'error'))
      return { problems, patchList };
    const world = { virtual: virtual.objects, host: host.objects };
    return { problems, patchList, ...(await this.#sync(world, config, input.isReverse)) };
  }

  async #sync(world: RenderWorld, config: Config, isReverse: boolean): Promise<JsonObject> {
    const configured = syncedKinds(config);
    const kinds = kindsAmong(config, world.virtual).map((kind, at) => ({
      kind,
      compiled: this.#compile(configured[at]?.patches ?? []),
    }));
    const originals = kinds.flatMap(({ kind: { resource } }) =>
      world.virtual.filter(({ kind }) => kind === resource.kind),
    );
    const [first] = originals;
    const programs = kinds.flatMap(({ compiled }) => compiled.programs);
    const sandbox = await this.#sandboxFor(config);
    for (const program of programs) sandbox.define(program);
    const traces: ObjectTrace[] = [];
    try {
      const options = kinds.map(({ kind, compiled }) =>
        tracedOptions({ config, kind, compiled, evaluator: sandbox, world }, traces),
      );
      const rendered = await renderKinds(options, (one) =>
        isReverse ? renderToVirtual(world, one) : renderToHost(world, one),
      );
      const result = describeRendered(rendered, (object) =>
        kinds.some(({ kind }) => kind.resource.kind === object.kind),
      );
      return {
        original: printAll(originals),
        paths: first === undefined ? [] : patchPathsOf(asJson(first)),
        ...result,
        notes: [...unsyncedNotes(config, isReverse ? world.host : world.virtual), ...result.notes],
        traces: traces.toSorted((a, b) => (a.object < b.object ? -1 : 1)),
      };
    } finally {
      for (const { id } of programs) sandbox.forget(id);
    }
  }

  /** Program ids are never used twice in one sandbox. */
  #compile(patches: readonly PatchConfig[]): CompiledPatches {
    const compiled = compilePatches(patches, this.#nextProgramId);
    this.#nextProgramId += compiled.programs.length;
    return compiled;
  }

  /** The limits and `context.vcluster` are fixed for a sandbox. Edited patches do not start another process. */
  async #sandboxFor(config: Config): Promise<Sandbox> {
    const settings = sandboxSettings(config);
    const compared = JSON.stringify(settings, (key, value: unknown) =>
      key === 'patches' ? undefined : value,
    );
    if (this.#sandbox === undefined || compared !== this.#sandboxSettings) {
      await this.#sandbox?.[Symbol.asyncDispose]();
      this.#sandbox = await createSandbox({
        ...settings,
        programs: [],
        clock: systemClock,
        logger: silentLogger,
      });
      this.#sandboxSettings = compared;
    }
    return this.#sandbox;
  }
}

/** Options whose pipeline adds a trace of every object to `traces`. */
function tracedOptions(input: OfflineInput, traces: ObjectTrace[]): OfflineOptions {
  const options = offlineOptions(input);
  const monotonicMs = (): number => systemClock.monotonicMs();
  const traced = { ...options.pipelineOptions, monotonicMs };
  const record = (trace: PatchTrace): void => {
    const object = trace.object as unknown as KubeObject; // a translated object, which has a name
    traces.push({
      object: `${input.kind.resource.kind} ${objectKey(object)}`,
      patches: trace.patches.map(patchJson),
    });
  };
  return { ...options, pipeline: tracingPipeline(traced, (_, trace) => record(trace)) };
}

/** `{index, path, action, durationMs, matches: [{path, before?, after?}], nearest?, error?}`; a value that does not exist is absent. */
function patchJson({ error, nearest, matches, ...patch }: TracedPatch): JsonObject {
  return {
    ...patch,
    matches: matches.map(matchJson),
    ...(nearest === undefined ? {} : { nearest }),
    ...(error === undefined
      ? {}
      : { error: { kind: error.kind, path: error.path, message: error.message, excerpt: error.excerpt } }),
  };
}

function matchJson({ path, before, after }: TracedMatch): JsonObject {
  return {
    path,
    ...(before === undefined ? {} : { before }),
    ...(after === undefined ? {} : { after }),
  };
}
