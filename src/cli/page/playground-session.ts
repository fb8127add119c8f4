/** One run of the playground: patches and objects as text in, the synced objects, the trace and every problem out. */

import { systemClock } from '../../base/clock.ts';
import type { ConfigProblem } from '../../base/errors.ts';
import { ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import { silentLogger } from '../../base/logger.ts';
import { parsePatchFile } from '../../config/patch-file.ts';
import type { Config, PatchConfig } from '../../config/types.ts';
import { asJson, objectKey, type KubeObject } from '../../kube/object.ts';
import { compilePatches, type CompiledPatches } from '../../syncer/patch/compile.ts';
import { tracingPipeline, type PatchTrace } from '../../syncer/patch/trace.ts';
import { renderToHost, renderToVirtual, type Rendered, type RenderWorld } from '../../syncer/render.ts';
import { createSandbox, type Sandbox } from '../../syncer/sandbox/sandbox.ts';
import { sandboxSettings } from '../../syncer/translation.ts';
import { CONFIG_CHECKS } from '../configuration/config-checks.ts';
import { parseObjects } from '../objects/object-files.ts';
import { endpointsKind } from '../../syncer/kinds/endpoints.ts';
import { inNamespace, offlineOptions, type OfflineOptions } from '../offline/offline-sync.ts';
import { printObject } from '../objects/one-object.ts';
import { describeFailure } from '../offline/patch-failure.ts';
import { withoutBookkeeping } from '../objects/without-bookkeeping.ts';
import { patchPathsOf } from './object-paths.ts';
import { traceJson } from './trace-json.ts';

/** What the user typed. */
interface RunInput {
  /** A list of patches, or `{patches: […]}`. */
  readonly patches: string;
  readonly virtual: string;
  readonly host: string;
  readonly isReverse: boolean;
}

type Editor = 'patches' | 'virtual' | 'host';

/** Keeps one sandbox for all runs, so that a run costs no process start. Runs are one after another. */
export class PlaygroundSession implements AsyncDisposable {
  readonly #config: Config;
  readonly #sandbox: Sandbox;
  #nextProgramId = 0;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(config: Config, sandbox: Sandbox) {
    this.#config = config;
    this.#sandbox = sandbox;
  }

  /** `config` gives the names, the namespaces and the limits; its patches are not used. */
  static async open(config: Config): Promise<PlaygroundSession> {
    const sandbox = await createSandbox({
      ...sandboxSettings(config),
      programs: [],
      clock: systemClock,
      logger: silentLogger,
    });
    return new PlaygroundSession(config, sandbox);
  }

  /**
   * `{problems: [{editor, line, column, message, severity}], original, result, plainResult, imports, notes, traces, paths}`: texts are YAML,
   * `original` is the virtual object, `plainResult` is without bookkeeping. With problems of severity `error` nothing is run.
   */
  run(body: JsonObject): Promise<JsonValue> {
    const result = this.#last.then(() => this.#run(readInput(body)));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last;
    await this.#sandbox[Symbol.asyncDispose]();
  }

  async #run(input: RunInput): Promise<JsonValue> {
    const parsed = parsePatchFile({ text: input.patches, file: 'patches' }, CONFIG_CHECKS);
    const virtual = readEditor(input.virtual, 'default');
    const host = readEditor(input.host, this.#config.host.namespace);
    const problems = [
      ...placed('patches', parsed.problems),
      ...placed('virtual', virtual.problems),
      ...placed('host', host.problems),
    ];
    if (problems.some(({ severity }) => severity === 'error')) return { problems };
    const world = { virtual: virtual.objects, host: host.objects };
    const endpoints = virtual.objects.filter(({ kind }) => kind === 'Endpoints');
    const [first] = endpoints;
    return {
      problems,
      original: printAll(endpoints),
      paths: first === undefined ? [] : patchPathsOf(asJson(first)),
      ...(await this.#sync(world, parsed.patches, input.isReverse)),
    };
  }

  async #sync(world: RenderWorld, patches: readonly PatchConfig[], isReverse: boolean): Promise<JsonObject> {
    const compiled = compilePatches(patches, this.#nextProgramId);
    this.#nextProgramId += compiled.programs.length;
    for (const program of compiled.programs) this.#sandbox.define(program);
    const traces: PatchTrace[] = [];
    try {
      const options = this.#renderOptions(world, compiled, (trace) => traces.push(trace));
      const rendered = await (isReverse ? renderToVirtual(world, options) : renderToHost(world, options));
      return { ...describeRendered(rendered), traces: traces.map(traceJson) };
    } finally {
      for (const { id } of compiled.programs) this.#sandbox.forget(id);
    }
  }

  #renderOptions(
    world: RenderWorld,
    compiled: CompiledPatches,
    report: (trace: PatchTrace) => void,
  ): OfflineOptions {
    const options = offlineOptions({
      config: this.#config,
      kind: endpointsKind,
      compiled,
      evaluator: this.#sandbox,
      world,
    });
    const monotonicMs = (): number => systemClock.monotonicMs();
    const traced = { ...options.pipelineOptions, monotonicMs };
    return { ...options, pipeline: tracingPipeline(traced, (_, trace) => report(trace)) };
  }
}

function readInput(body: JsonObject): RunInput {
  const text = (key: string): string => {
    const value = ownValue(body, key) ?? '';
    if (typeof value !== 'string') throw new Error(`${key} must be a string`);
    return value;
  };
  return {
    patches: text('patches'),
    virtual: text('virtual'),
    host: text('host'),
    isReverse: body['isReverse'] === true,
  };
}

function readEditor(text: string, namespace: string): { objects: KubeObject[]; problems: ConfigProblem[] } {
  const problems: ConfigProblem[] = [];
  const objects = inNamespace(parseObjects('', text, problems), namespace);
  return { objects, problems };
}

function placed(editor: Editor, problems: readonly ConfigProblem[]) {
  return problems.map(({ line, column, path, message, severity }) => ({
    editor,
    line,
    column,
    message: path === '' ? message : `${path}: ${message}`,
    severity,
  }));
}

function describeRendered(rendered: readonly Rendered[]): JsonObject {
  const objects = rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
  const synced = objects.filter(({ kind }) => kind === 'Endpoints');
  const imports = objects.filter(({ kind }) => kind !== 'Endpoints');
  return {
    result: printAll(synced),
    plainResult: printAll(synced.map(withoutBookkeeping)),
    imports: printAll(imports.map(withoutBookkeeping)),
    notes: rendered.flatMap(noteOf),
  };
}

/** What a command would write to stderr. */
function noteOf(one: Rendered): JsonObject[] {
  switch (one.kind) {
    case 'object':
      return [];
    case 'skipped':
      return [{ level: 'info', text: `skipped ${one.key}: ${one.reason}` }];
    case 'refused':
      return [{ level: 'warning', text: `skipped ${one.what}: ${one.reason}` }];
    case 'elsewhere':
      return [{ level: 'info', text: `${objectKey(one.object)} is imported into the other cluster` }];
    case 'failed':
      return [{ level: 'error', text: `failed ${one.key}: ${describeFailure(one.error)}` }];
    default:
      return one satisfies never;
  }
}

function printAll(objects: readonly KubeObject[]): string {
  const json = objects as unknown as JsonObject[]; // Kubernetes objects are JSON
  return json.map((object) => printObject(object, 'yaml')).join('---\n');
}
