/** One run of the page: patches and objects as text in, the synced objects, the trace and every problem out. */

import { type JsonObject, type JsonValue, ownValue, valueAt, isJsonObject } from '../base/json.ts';
import type { Config } from '../syncer/config/config.ts';
import { asJson, asObject, groupOf, type KubeObject, objectKey } from '../kube/object.ts';
import { FileSync, type Rendered, type RenderedWorld } from '../syncer/rehearsal/files.ts';
import { PatchError, type ConfigProblem } from '../base/errors.ts';
import { withoutBookkeeping } from '../syncer/translate/bookkeeping.ts';
import type { ObjectRules } from '../cli/output/object-problems.ts';
import { parseObjects, printObject } from '../cli/output/objects.ts';
import { apiDefaults } from '../cli/offline/api-defaults.ts';
import { parseConfig } from '../cli/config/parse.ts';
import { withPatchFile } from '../syncer/rehearsal/patches-alone.ts';
import { readDocument } from '../config-file/document.ts';
import { describeFailure } from '../cli/output/terminal.ts';

const WARM_UP = {
  patches: '[{path: metadata.annotations.a, expression: value + 1}]',
  virtual: '{apiVersion: v1, kind: Endpoints, metadata: {name: a, annotations: {a: b}}}',
};

/** Keeps one sandbox for all runs of the same settings, so that most runs start no process. Runs are one after another. */
export class PlaygroundSession implements AsyncDisposable {
  readonly #config: () => Config;
  readonly #sync = new FileSync({ admit: apiDefaults() });
  #last: Promise<unknown> = Promise.resolve();

  /** `config` is for patches without a configuration around them, which replace its own. */
  constructor(config: () => Config) {
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

  /** Starts the process of the sandbox: otherwise, the first run would show that as the time that a patch takes. */
  async warmUp(): Promise<void> {
    await this.run(WARM_UP).catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last;
    await this.#sync[Symbol.asyncDispose]();
  }

  async #run(input: RunInput): Promise<JsonValue> {
    const virtual = readEditor(input.virtual);
    const host = readEditor(input.host, { nameIsEnough: !input.isReverse });
    const given = input.isReverse ? host : virtual;
    const edited = readEditedConfig(input.patches, given.objects, this.#config());
    const problems = [
      ...placed('patches', edited.problems),
      ...placed('virtual', virtual.problems),
      ...placed('host', host.problems),
    ];
    const { config, patchList = null } = edited;
    if (config === undefined || problems.some(({ severity }) => severity === 'error'))
      return { problems, patchList };
    const synced = await this.#sync.run({ virtual: virtual.objects, host: host.objects }, config, {
      direction: input.isReverse ? 'toVirtual' : 'toHost',
      isTraced: true,
    });
    return { problems, patchList, ...resultOf(synced, config, input) };
  }
}

function resultOf(world: RenderedWorld, config: Config, { isReverse }: RunInput): JsonObject {
  const { rendered, missing, synced, traces } = world;
  const [first] = synced.virtual;
  const failures = traces.flatMap(({ object, patches }) =>
    patches.flatMap(({ index, error }) => (error === undefined ? [] : [{ patch: index, object }])),
  );
  return {
    paths: first === undefined ? [] : patchPathsOf(asJson(first)),
    ...describeRendered(rendered),
    notes: [
      ...unsyncedNotes(world, isReverse ? synced.host : synced.virtual),
      ...failures.map(({ patch, object }) =>
        note('error', `patches[${patch}] fails on ${object}: ${CONSEQUENCES[config.patches.onError]}`),
      ),
      // The trace has the error of a patch, and this the consequence for the object.
      ...rendered.filter((one) => failures.length === 0 || !isPatchFailure(one)).flatMap(noteOf),
      ...(isReverse ? [] : missing.map((object) => note('info', `${object} ${IN_NO_EDITOR}`))),
    ],
    traces: tracesJson(world),
  };
}

const IN_NO_EDITOR = 'is referenced and not among the virtual objects, so it is not imported';

const CONSEQUENCES: Readonly<Record<Config['patches']['onError'], string>> = {
  path: 'the daemon leaves out its path; the error is in the trace',
  object: 'the daemon does not write the object; this is the result without the patch',
};

/**
 * `[{object, patches: [{index, path, action, durationMs, matches: [{path, before?, after?}], nearest?, error?}]}]`, by object; a value that does not
 * exist is absent.
 */
function tracesJson({ traces }: RenderedWorld): JsonObject[] {
  const all = traces.map(({ object, patches }) => ({
    object,
    patches: patches.map(({ error, matches, ...patch }) => ({
      ...patch,
      matches: matches.map(({ path, before, after }) => ({
        path,
        ...(before !== undefined && { before }),
        ...(after !== undefined && { after }),
      })),
      ...(error !== undefined && {
        error: { kind: error.kind, path: error.path, message: error.message, excerpt: error.excerpt },
      }),
    })),
  }));
  return all.toSorted((a, b) => (a.object < b.object ? -1 : 1));
}

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
  const [patches = '', virtual = '', host = ''] = ['patches', 'virtual', 'host'].map((key) => {
    const value = ownValue(body, key) ?? '';
    if (typeof value !== 'string') throw new Error(`${key} must be a string`);
    return value;
  });
  return { patches, virtual, host, isReverse: body['isReverse'] === true };
}

function readEditor(text: string, rules: ObjectRules = {}) {
  const problems: ConfigProblem[] = [];
  return { objects: parseObjects('', text, problems, rules), problems };
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

// The configuration of one run of the page: the one in the editor, or that of the page with the patches in the editor.

interface EditedConfig {
  /** Undefined when any problem is an error. */
  readonly config: Config | undefined;
  /** The key that a list of patches belongs to; undefined: the editor holds a configuration. */
  readonly patchList: string | undefined;
  readonly problems: readonly ConfigProblem[];
}

/**
 * `objects` are those to be synced: a list of patches is for the kind of the first one that can be patched. `base` is the configuration
 * of the page.
 */
function readEditedConfig(text: string, objects: readonly KubeObject[], base: Config): EditedConfig {
  const { value, isReadable } = readDocument('patches', text, { listKey: 'patches' });
  const isConfig = isReadable && CONFIG_SECTIONS.some((section) => Object.hasOwn(value, section));
  if (isConfig) return wholeConfig(text, value, base);
  const { config, key: patchList, problems } = withPatchFile({ text, file: 'patches' }, objects, base);
  return { config, patchList, problems };
}

const CONFIG_SECTIONS = ['sync', 'endpointSyncer', 'experimental'];

/** The names of the page are used where the text has none, so that a part of a configuration is enough. */
function wholeConfig(text: string, value: JsonObject, base: Config): EditedConfig {
  const isSet = (...path: string[]): boolean => valueAt(value, ['endpointSyncer', ...path]) !== undefined;
  const flags = {
    ...(!isSet('name') && { name: base.name }),
    ...(!isSet('host', 'namespace') && { 'host.namespace': base.host.namespace }),
  };
  const input = { env: {}, flags };
  const { config, problems } = parseConfig({ text, file: 'patches' }, input);
  return { config, patchList: undefined, problems };
}

/**
 * `{original, result, plainResult, imports}`. `original` has the virtual objects of the results alone, in their order, because an object that is not
 * synced is not deleted either.
 */
function describeRendered(rendered: readonly Rendered[]): JsonObject {
  const objects = rendered.filter((one) => one.kind === 'object');
  const pairs = objects
    .filter(({ isImport }) => !isImport)
    .map(({ original, object }) => ({ original, object: inOrderOf(original, object) }));
  const imports = objects
    .filter(({ isImport }) => isImport)
    .map(({ object }) => inOrderOf(undefined, object));
  const plain = (object: KubeObject): KubeObject => withoutManagedFields(withoutBookkeeping(object));
  return {
    original: printAll(pairs.flatMap(({ original }) => original ?? []).map(withoutManagedFields)),
    result: printAll(pairs.map(({ object }) => object)),
    plainResult: printAll(pairs.map(({ object }) => plain(object))),
    imports: printAll(imports.map(plain)),
  };
}

const USUAL_ORDER: JsonObject = {
  apiVersion: '',
  kind: '',
  metadata: { name: '', namespace: '', labels: {}, annotations: {} },
};

/** The members in the order of the virtual object, those that it does not have in the usual order, so that a difference shows changes only. */
function inOrderOf(original: KubeObject | undefined, object: KubeObject): KubeObject {
  const usual = ordered(asJson(object), USUAL_ORDER);
  const result = original === undefined ? usual : ordered(usual, asJson(original));
  return asObject(result as JsonObject); // the same members
}

function ordered(value: JsonValue, model: JsonValue): JsonValue {
  if (Array.isArray(value))
    return value.map((element, at) => ordered(element, (Array.isArray(model) ? model[at] : null) ?? null));
  if (!isJsonObject(value) || !isJsonObject(model)) return value;
  const known = Object.keys(model).filter((key) => Object.hasOwn(value, key));
  const entries = [...new Set([...known, ...Object.keys(value)])].map(
    (key) => [key, ordered(ownValue(value, key) ?? null, ownValue(model, key) ?? null)] as const,
  );
  return Object.fromEntries(entries);
}

function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Why nothing of what was given is synced; empty: something is. Objects of other kinds beside it are what patches and Services need. */
function unsyncedNotes({ kinds, unsynced }: RenderedWorld, synced: readonly KubeObject[]): JsonObject[] {
  if (synced.length > 0) return [];
  const syncs = kinds.length === 0 ? 'nothing' : kinds.join(', ');
  if (unsynced.length === 0) {
    const advice =
      kinds.length === 0
        ? 'this configuration syncs nothing'
        : `paste an object of kind ${kinds.join(' or ')}`;
    return [note('info', `there is no object to sync: ${advice}`)];
  }
  return unsynced.map(({ object, setting }) => {
    const { apiVersion = '', kind = '' } = object;
    const what = groupOf(apiVersion) === '' ? kind : `${kind} of ${apiVersion}`;
    const reason =
      setting ?? `${what} is not a kind that endpoint-syncer syncs; this configuration syncs ${syncs}`;
    return note('warning', `${kind} ${objectKey(object)} is not synced: ${reason}`);
  });
}

function note(level: 'info' | 'warning' | 'error', text: string): JsonObject {
  return { level, text };
}

function isPatchFailure(one: Rendered): boolean {
  return one.kind === 'failed' && one.error instanceof PatchError;
}

function noteOf(one: Rendered): JsonObject[] {
  switch (one.kind) {
    case 'object':
      return [];
    case 'skipped':
    case 'refused':
      return [
        note(one.kind === 'skipped' ? 'info' : 'warning', `skipped ${one.of} ${one.key}: ${one.reason}`),
      ];
    case 'elsewhere':
      return [note('info', `${objectKey(one.object)} is imported into the other cluster`)];
    case 'failed':
      return [note('error', `failed ${one.of} ${one.key}: ${describeFailure(one.error)}`)];
  }
}

function printAll(objects: readonly KubeObject[]): string {
  return objects.map((object) => printObject(asJson(object), 'yaml')).join('---\n');
}

// The patch paths of an object, for completion: every member once, with wildcards for the elements of lists.

const PATHS_MAX = 500;

/** `metadata.annotations["example.com/owner"]`, `subsets[*].addresses[*].ip`, … in the order of the object. */
export function patchPathsOf(object: JsonValue): string[] {
  const found = new Set<string>();
  collect(object, '', found);
  return [...found];
}

function collect(value: JsonValue, path: string, found: Set<string>): void {
  if (found.size >= PATHS_MAX) return;
  if (path !== '') found.add(path);
  if (Array.isArray(value)) {
    for (const element of value) collect(element, `${path}[*]`, found);
  } else if (isJsonObject(value)) {
    for (const key of Object.keys(value)) collect(ownValue(value, key) ?? null, join(path, key), found);
  }
}

function join(path: string, key: string): string {
  if (!/^[A-Za-z0-9_-]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}
