/** One run of the page: patches and objects as text in, the synced objects, the trace and every problem out. */

import { systemClock } from '../../base/clock.ts';
import { type JsonObject, type JsonValue, ownValue } from '../../base/json.ts';
import type { Config } from '../../config/types.ts';
import { asJson, type KubeObject, objectKey } from '../../kube/object.ts';
import { syncedKinds } from '../../syncer/kinds/synced-kinds.ts';
import {
  type PatchTrace,
  type TracedMatch,
  type TracedPatch,
  tracingPipeline,
} from '../../syncer/patch/trace.ts';
import { KeptSandbox } from '../offline/kept-sandbox.ts';
import { type FileWorld, inNamespace, renderToHost, renderToVirtual } from '../offline/offline-sync.ts';
import { patchPathsOf } from './object-paths.ts';
import { readEditedConfig } from './playground-config.ts';
import { describeRendered, printAll, unsyncedNotes } from './playground-result.ts';
import type { ConfigProblem } from '../../base/errors.ts';
import { parseObjects } from '../objects/object-files.ts';

/** The trace of one object, and the object that the patches saw. */
interface ObjectTrace extends JsonObject {
  /** `EndpointSlice team-a/web-x-shop-x-my-vcluster` */
  object: string;
  patches: JsonValue;
}

/** Keeps one sandbox for all runs of the same settings, so that most runs start no process. Runs are one after another. */
export class PlaygroundSession implements AsyncDisposable {
  readonly #config: Config;
  readonly #sandbox = new KeptSandbox();
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
    await this.#sandbox[Symbol.asyncDispose]();
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

  async #sync(world: FileWorld, config: Config, isReverse: boolean): Promise<JsonObject> {
    const kinds = syncedKinds(config).map(({ kind }) => kind.resource.kind);
    const isSynced = ({ kind = '' }: KubeObject): boolean => kinds.includes(kind);
    const originals = kinds.flatMap((kind) => world.virtual.filter((object) => object.kind === kind));
    const [first] = originals;
    const traces = new Map<string, ObjectTrace>();
    const render = isReverse ? renderToVirtual : renderToHost;
    const { rendered } = await render(world, config, {
      createSandbox: (options) => this.#sandbox.open(options),
      createPipeline: ({ resource }, options) =>
        tracingPipeline({ ...options, monotonicMs }, (direction, trace) => {
          if ((direction === 'toVirtual') !== isReverse) return;
          const traced = objectTrace(resource.kind, trace);
          if (!traces.has(traced.object)) traces.set(traced.object, traced);
        }),
    });
    const result = describeRendered(rendered, isSynced);
    return {
      original: printAll(originals),
      paths: first === undefined ? [] : patchPathsOf(asJson(first)),
      ...result,
      notes: [...unsyncedNotes(config, isReverse ? world.host : world.virtual), ...result.notes],
      traces: [...traces.values()].toSorted((a, b) => (a.object < b.object ? -1 : 1)),
    };
  }
}

const monotonicMs = (): number => systemClock.monotonicMs();

function objectTrace(kind: string, { object, patches }: PatchTrace): ObjectTrace {
  const translated = object as unknown as KubeObject; // it has a name
  return { object: `${kind} ${objectKey(translated)}`, patches: patches.map(patchJson) };
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

/** One request of the page: the texts of its editors. */
interface RunInput {
  /** A list of patches, `{patches: […]}`, or a configuration. */
  readonly patches: string;
  readonly virtual: string;
  readonly host: string;
  readonly isReverse: boolean;
}

type Editor = 'patches' | 'virtual' | 'host';

/** Throws where a text is not a string: the page always sends strings. */
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

interface EditorObjects {
  readonly objects: readonly KubeObject[];
  readonly problems: readonly ConfigProblem[];
}

/** `namespace`: of objects that have none. */
function readEditor(text: string, namespace: string): EditorObjects {
  const problems: ConfigProblem[] = [];
  const objects = inNamespace(parseObjects('', text, problems), namespace);
  return { objects, problems };
}

/** The problems of one editor as the page shows them. */
function placed(editor: Editor, problems: readonly ConfigProblem[]) {
  return problems.map(({ line, column, path, message, severity }) => ({
    editor,
    line,
    column,
    message: path === '' ? message : `${path}: ${message}`,
    severity,
  }));
}
