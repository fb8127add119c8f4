/** Parses kubeconfigs and merges them as kubectl does: earlier files take precedence. */

import { readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { newClusters, newContexts, type Cluster } from './client-node-parts.ts';
import { parse, YAMLParseError, type DocumentOptions, type ParseOptions, type SchemaOptions } from 'yaml';
import { parseYaml } from '../../base/yaml/document.ts';
import { fileProblem, TerminalError } from '../../base/errors.ts';
import { isJsonObject, objectField, objectList, ownValue, type JsonObject } from '../../base/json.ts';

export interface Kubeconfig {
  /** For messages: the file, or the Secret. */
  readonly source: string;
  readonly currentContext: string;
  readonly clusters: readonly JsonObject[];
  readonly users: readonly JsonObject[];
  readonly contexts: readonly JsonObject[];
}

/** What one context selects. */
export interface SelectedContext {
  readonly source: string;
  readonly context: string;
  readonly namespace: string;
  readonly cluster: Cluster;
  /** What exec plugins may be told of the cluster beside its address: with the extension {@link EXEC_EXTENSION}. */
  readonly execInfo: JsonObject;
  readonly userName: string;
  readonly user: JsonObject;
}

export interface UserEntry {
  /** The `user` of the kubeconfig, as parsed; paths in it are absolute. */
  readonly user: JsonObject;
  readonly name: string;
  /** The kubeconfig, for messages. */
  readonly source: string;
  /** Information about the cluster that an exec plugin may receive. */
  readonly cluster: JsonObject;
  /** The kubeconfigs, one of which has the entry; empty: it is in none. */
  readonly files: readonly string[];
  readonly warn: (message: string) => void;
}

/** They stay strings, because a token may consist of digits. */
export const SCALARS: ParseOptions & DocumentOptions & SchemaOptions = {
  schema: 'failsafe',
  customTags: ['null', 'bool'],
};
/** Reserved among the extensions of a cluster for exec plugins. */
const EXEC_EXTENSION = 'client.authentication.k8s.io/exec';
const CLUSTER_PATHS = ['certificate-authority'];
const USER_PATHS = ['client-certificate', 'client-key', 'tokenFile', 'token-file'];

/** `folder` is what relative paths are relative to. Throws `TerminalError`. */
export function parseKubeconfig(text: string, source: string, folder: string): Kubeconfig {
  let document: unknown;
  try {
    document = parse(text, SCALARS);
  } catch (error) {
    throw new TerminalError(`${source} is not YAML${whereIn(error)}`);
  }
  if (!isJsonObject(document)) throw new TerminalError(`${source} is not a kubeconfig: it is not a mapping`);
  const entries = (key: string): JsonObject[] => {
    const list = document[key] ?? [];
    if (!Array.isArray(list)) throw new TerminalError(`${source} is not a kubeconfig: ${key} is not a list`);
    return list.filter(isJsonObject);
  };
  return {
    source,
    currentContext: textOf(document, 'current-context') ?? '',
    clusters: withTypedExtensions(entries('clusters'), text).map((entry) =>
      absolute(entry, 'cluster', CLUSTER_PATHS, folder),
    ),
    users: entries('users')
      .map((entry) => absolute(entry, 'user', USER_PATHS, folder))
      .map((entry) => absoluteCommand(entry, folder)),
    contexts: entries('contexts'),
  };
}

/** Extensions are read by other programs, for which a number has to be one. */
function withTypedExtensions(clusters: readonly JsonObject[], text: string): readonly JsonObject[] {
  const isExtended = (entry: JsonObject): boolean =>
    objectList(objectField(entry, 'cluster'), 'extensions').length > 0;
  if (!clusters.some(isExtended)) return clusters;
  const { json } = parseYaml(text);
  const typed = isJsonObject(json) ? objectList(json, 'clusters') : [];
  return clusters.map((entry, index) => {
    const extensions = ownValue(objectField(typed[index] ?? {}, 'cluster'), 'extensions');
    return extensions === undefined
      ? entry
      : { ...entry, cluster: { ...objectField(entry, 'cluster'), extensions } };
  });
}

/** The position of a syntax error. The parser's message quotes the text, which may contain a token. */
function whereIn(error: unknown): string {
  if (!(error instanceof YAMLParseError)) return '';
  const [start] = error.linePos ?? [];
  return start ? `: line ${start.line}, column ${start.col}` : '';
}

export function mergeKubeconfigs(files: readonly Kubeconfig[]): Kubeconfig {
  return {
    source: files.map(({ source }) => source).join(', '),
    currentContext: files.find(({ currentContext }) => currentContext !== '')?.currentContext ?? '',
    clusters: files.flatMap(({ clusters }) => clusters),
    users: files.flatMap(({ users }) => users),
    contexts: files.flatMap(({ contexts }) => contexts),
  };
}

/** '' selects the current context. Throws a `TerminalError` that lists the available contexts. */
export function selectContext(config: Kubeconfig, wanted: string): SelectedContext {
  const { source } = config;
  const name = wanted === '' ? config.currentContext : wanted;
  if (name === '') {
    throw new TerminalError(`${source} has no current-context; choose one of: ${namesOf(config.contexts)}`);
  }
  const rawContext = find(config.contexts, name, 'context', source);
  const context = usable(() => newContexts([rawContext]), `context ${name}`, source);
  const rawCluster = find(config.clusters, context.cluster, 'cluster', source);
  const user = context.user === undefined ? {} : find(config.users, context.user, 'user', source)['user'];
  return {
    source,
    context: name,
    namespace: context.namespace ?? '',
    cluster: usable(() => newClusters([rawCluster]), `cluster ${context.cluster}`, source),
    execInfo: execInfoOf(objectField(rawCluster, 'cluster')),
    userName: context.user ?? '',
    user: isJsonObject(user) ? user : {},
  };
}

function execInfoOf(cluster: JsonObject): JsonObject {
  const found = objectList(cluster, 'extensions').find((one) => one['name'] === EXEC_EXTENSION);
  return {
    ...(cluster['disable-compression'] === true ? { 'disable-compression': true } : {}),
    config: found?.['extension'] ?? null,
  };
}

function find(entries: readonly JsonObject[], name: string, kind: string, source: string): JsonObject {
  const found = entries.find((entry) => entry['name'] === name);
  if (found !== undefined) return found;
  throw new TerminalError(`${source} has no ${kind} ${JSON.stringify(name)}; there are: ${namesOf(entries)}`);
}

function namesOf(entries: readonly JsonObject[]): string {
  const names = entries.map((entry) => textOf(entry, 'name') ?? '(unnamed)');
  return names.length === 0 ? 'none' : names.slice(0, 20).join(', ');
}

/** client-node's readers throw plain errors about the entry that they are given. */
function usable<T>(read: () => T[], what: string, source: string): T {
  try {
    const [entry] = read();
    if (entry !== undefined) return entry;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.replace(/^\w+\[0\]\.?/, '') : String(cause);
    throw new TerminalError(`${source}: ${what} is unusable: ${why}`, { cause });
  }
  throw new TerminalError(`${source}: ${what} is unusable`);
}

/** Paths in a kubeconfig are relative to the folder that it is in. */
function absolute(entry: JsonObject, part: string, keys: readonly string[], folder: string): JsonObject {
  const inner = entry[part];
  if (!isJsonObject(inner)) return entry;
  const copy: JsonObject = { ...inner };
  for (const key of keys) {
    const path = textOf(inner, key);
    if (path !== undefined && !isAbsolute(path)) copy[key] = join(folder, path);
  }
  return { ...entry, [part]: copy };
}

/** A plugin with a slash in its name is a path too; without one it is looked up in PATH. */
function absoluteCommand(entry: JsonObject, folder: string): JsonObject {
  const user = entry['user'];
  const exec = isJsonObject(user) ? user['exec'] : undefined;
  if (!isJsonObject(user) || !isJsonObject(exec)) return entry;
  const command = textOf(exec, 'command');
  if (command === undefined || !command.includes('/') || isAbsolute(command)) return entry;
  return { ...entry, user: { ...user, exec: { ...exec, command: join(folder, command) } } };
}

/** A string of an entry, undefined when it is missing or empty. */
export function textOf(object: JsonObject, key: string): string | undefined {
  const value = ownValue(object, key);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Throws `TerminalError`, which names the entry of the kubeconfig and the file. */
export function readTextFile(path: string, entry: string, source: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const problem = `${entry} names a file that cannot be read, ${path}: ${fileProblem(cause)}`;
    throw new TerminalError(`${source}: ${problem}`, { cause });
  }
}
