/** Parses kubeconfigs and merges them, as client-go 0.36 does: earlier files take precedence, and one wrong value makes a file invalid. */

import { isAbsolute, join } from 'node:path';
import { readFileSync } from 'node:fs';
import { fileProblem, TerminalError } from '../../base/errors.ts';
import { placeOf, type Position } from '../../base/excerpt.ts';
import {
  isJsonObject,
  objectField,
  objectList,
  ownValue,
  text,
  textAt,
  type JsonObject,
} from '../../base/json.ts';
import { YamlDocument } from '../../base/yaml/document.ts';
import { readYamlDocuments } from '../../base/yaml/source.ts';
import { KUBECONFIG, typedFields } from './kubeconfig-fields.ts';

/** A cluster, user or context of a kubeconfig. */
export interface NamedEntry {
  readonly kind: 'cluster' | 'user' | 'context';
  readonly name: string;
  /** The known fields; paths in them are absolute. */
  readonly fields: JsonObject;
  /** For messages: the file, or the Secret. */
  readonly source: string;
  /** 1-based, of the entry; undefined: it is in no text. */
  readonly line?: number;
  /** Of its fields. */
  readonly lines: Readonly<Record<string, number>>;
}

export interface Kubeconfig {
  /** For messages: the file, or the Secret. */
  readonly source: string;
  readonly currentContext: string;
  readonly clusters: readonly NamedEntry[];
  readonly users: readonly NamedEntry[];
  readonly contexts: readonly NamedEntry[];
  /** About what is in the text and is not read, as client-go does not read it. */
  readonly warnings: readonly string[];
}

/** What one context selects. */
export interface SelectedContext {
  readonly source: string;
  /** '' without a current context, where the entries have no names either. */
  readonly context: string;
  readonly namespace: string;
  readonly cluster: NamedEntry;
  /** Without fields where the context names none, or one that is not there: requests are sent without credentials. */
  readonly user: NamedEntry;
  /** The context names a user that is not there. client-go sends no credential then. */
  readonly missingUser: TerminalError | undefined;
}

/** The error of a field of an entry, or of the entry: where it is, what is wrong, what to do. */
export function entryError(
  entry: NamedEntry,
  field: string,
  problem: string,
  cause?: unknown,
): TerminalError {
  const { kind, name, source, line, lines } = entry;
  const [member = ''] = field.split('.', 1);
  const at = ownLine(lines, member) ?? line;
  const where = at === undefined ? source : `${source}, line ${at}`;
  const what = `${kind}s[${name}]${field === '' ? '' : `.${field}`}`;
  return new TerminalError(`${where}: ${what} ${problem}`, cause === undefined ? {} : { cause });
}

function ownLine(lines: NamedEntry['lines'], field: string): number | undefined {
  return Object.hasOwn(lines, field) ? lines[field] : undefined;
}

export interface UserEntry {
  readonly user: NamedEntry;
  /** Information about the cluster that an exec plugin may receive. */
  readonly cluster: JsonObject;
  /** The kubeconfigs, one of which has the user; empty: it is in none. */
  readonly files: readonly string[];
  readonly warn: (message: string) => void;
}

/** `folder` is what relative paths are relative to. Throws `TerminalError`, which shows no value of the text. */
export function parseKubeconfig(content: string, source: string, folder: string): Kubeconfig {
  const file = new KubeconfigText(content.replace(/^\ufeff/u, ''), source);
  return {
    source,
    currentContext: file.currentContext,
    clusters: file.entries('cluster', folder),
    users: file.entries('user', folder),
    contexts: file.entries('context', folder),
    warnings: file.warnings,
  };
}

type Path = readonly (string | number)[];

/** The typed document of a text, with the line of each field. */
class KubeconfigText {
  readonly warnings: readonly string[];
  readonly #source: string;
  readonly #document: YamlDocument;
  readonly #typed: JsonObject;
  /** Offset of the start of each line. */
  readonly #lineStarts: readonly number[];

  constructor(content: string, source: string) {
    this.#source = source;
    this.#lineStarts = [0, ...[...content.matchAll(/\n/gu)].map(({ index }) => index + 1)];
    // Go's parser does not look at what comes after the first document.
    const [first = { root: null, problems: [] }, second] = readYamlDocuments(content);
    this.#document = new YamlDocument(content, first);
    const problem = this.#document.problems.find(({ severity }) => severity === 'error');
    if (problem !== undefined) throw notYaml(source, placeOf(content, problem.offset), problem.code);
    this.#typed = this.#read();
    this.warnings = [
      ...this.#document.duplicates.map(
        ({ offset, firstOffset }) =>
          `${source}, line ${this.#lineAt(offset)}: this key replaces the same one in line ${this.#lineAt(firstOffset)}, as for kubectl`,
      ),
      ...(second === undefined || (second.root === null && second.problems.length === 0)
        ? []
        : [`${source} has a second document, which is not read, as by kubectl`]),
    ];
  }

  get currentContext(): string {
    return text(this.#typed, 'current-context');
  }

  entries(kind: NamedEntry['kind'], folder: string): NamedEntry[] {
    const list = objectList(this.#typed, `${kind}s`);
    this.#refuseRepeated(list, [`${kind}s`]);
    return list.map((entry, index) => {
      const path = [`${kind}s`, index];
      const fields = objectField(entry, kind);
      this.#refuseRepeated(extensionsOf(fields), [...path, kind, 'extensions']);
      const lines = Object.keys(fields).map((name) => [name, this.#lineOf([...path, kind, name])] as const);
      return {
        kind,
        name: text(entry, 'name'),
        fields: withAbsolutePaths(fields, PATHS[kind], folder),
        source: this.#source,
        line: this.#lineOf(path),
        lines: Object.fromEntries(lines),
      };
    });
  }

  #read(): JsonObject {
    const { json } = this.#document;
    if (json === null) return {}; // nothing but comments
    if (!isJsonObject(json))
      throw new TerminalError(
        `${this.#source}, line 1: this is not a kubeconfig, which is a mapping: ${ANOTHER}`,
      );
    const fail = (path: Path, problem: string): never => this.#fail(path, problem);
    const [kind, version] = ['kind', 'apiVersion'].map((name) => typeMeta(json, name, fail));
    if (kind !== '' && kind !== 'Config') fail(['kind'], 'is not Config: name a kubeconfig');
    if (!VERSIONS.includes(version ?? ''))
      fail(['apiVersion'], 'is not v1, the only version of kubeconfigs: write v1');
    const typed = typedFields(json, KUBECONFIG, [], fail);
    const object = isJsonObject(typed) ? typed : {};
    this.#refuseRepeated(extensionsOf(object), ['extensions']);
    this.#refuseRepeated(extensionsOf(objectField(object, 'preferences')), ['preferences', 'extensions']);
    return object;
  }

  /** Go makes a map of each list of named entries, which takes no name twice. */
  #refuseRepeated(list: readonly JsonObject[], path: Path): void {
    const seen = new Map<string, number>();
    for (const [index, entry] of list.entries()) {
      const name = text(entry, 'name');
      const first = seen.get(name);
      if (first !== undefined) {
        const line = this.#lineOf([...path, first]);
        this.#fail([...path, index], `has the name of that in line ${line}: rename or remove one of them`);
      }
      seen.set(name, index);
    }
  }

  #fail(path: Path, problem: string): never {
    const { json } = this.#document;
    const name = path.reduce<string>((whole, step, depth) => {
      if (depth === 2 && `${step}s` === path[0]) return whole; // as entryError
      if (typeof step === 'string') return whole === '' ? step : `${whole}.${step}`;
      return `${whole}[${textAt(json, ...path.slice(0, depth + 1), 'name') || step}]`;
    }, '');
    throw new TerminalError(`${this.#source}, line ${this.#lineOf(path)}: ${name} ${problem}`);
  }

  #lineOf(path: Path): number {
    return this.#lineAt(this.#document.offsetOfKey(path));
  }

  #lineAt(offset: number): number {
    return this.#lineStarts.findLastIndex((start) => start <= offset) + 1;
  }
}

/** A syntax error, without the text at its place, which may be a token. */
function notYaml(source: string, { line, column }: Position, code: string): TerminalError {
  return new TerminalError(
    `${source} is not YAML: line ${line}, column ${column}: ${code}; correct it, or write the file again`,
  );
}

/** Of `kind` and `apiVersion`, Go takes any case, and the last one in the order of their bytes. */
function typeMeta(document: JsonObject, name: string, fail: (path: Path, problem: string) => never): string {
  const written = Object.keys(document).filter((key) => key.toLowerCase() === name.toLowerCase());
  const values = written.toSorted().map((key) => {
    const value = document[key] ?? null;
    return value === null || typeof value === 'string'
      ? value
      : fail([key], 'must be text: put it in quotes');
  });
  return values.findLast((value) => value !== null) ?? '';
}

/** All of them are v1. */
const VERSIONS = ['', '/', 'v1', '/v1'];

/** Those that have a name of their own: one without a value leaves it to the next. */
function extensionsOf(fields: JsonObject): JsonObject[] {
  return objectList(fields, 'extensions').filter((entry) => 'extension' in entry);
}

/** The fields with paths, which are relative to the folder of the file. A plugin with a slash in its name is a path too. */
const PATHS = {
  cluster: ['certificate-authority'],
  user: ['client-certificate', 'client-key', 'tokenFile'],
  context: [],
};

function withAbsolutePaths(fields: JsonObject, names: readonly string[], folder: string): JsonObject {
  const copy = { ...fields };
  for (const name of names) {
    const path = text(fields, name);
    if (path !== '') copy[name] = isAbsolute(path) ? path : join(folder, path);
  }
  const exec = ownValue(fields, 'exec');
  const command = isJsonObject(exec) ? text(exec, 'command') : '';
  if (isJsonObject(exec) && command.includes('/') && !isAbsolute(command))
    copy['exec'] = { ...exec, command: join(folder, command) };
  return copy;
}

export function mergeKubeconfigs(files: readonly Kubeconfig[]): Kubeconfig {
  return {
    source: files.map(({ source }) => source).join(', '),
    currentContext: files.find(({ currentContext }) => currentContext !== '')?.currentContext ?? '',
    clusters: files.flatMap(({ clusters }) => clusters),
    users: files.flatMap(({ users }) => users),
    contexts: files.flatMap(({ contexts }) => contexts),
    warnings: files.flatMap(({ warnings }) => warnings),
  };
}

/** '' selects the current context. Throws a `TerminalError` that lists the available ones. */
export function selectContext(config: Kubeconfig, wanted: string): SelectedContext {
  const { source, clusters, contexts, users } = config;
  const name = wanted || config.currentContext;
  const context = named(contexts, name);
  if (context === undefined && name !== '')
    throw new TerminalError(
      `${source} has no context ${JSON.stringify(name)}; choose one of: ${namesOf(contexts)}`,
    );
  const clusterName = context === undefined ? '' : text(context.fields, 'cluster');
  const cluster = named(clusters, clusterName);
  if (cluster === undefined) {
    if (context === undefined) throw new TerminalError(`${source} ${whyNoContext(config)}`);
    const problem =
      clusterName === '' ? 'is missing' : `is ${JSON.stringify(clusterName)}, which is not there`;
    throw entryError(context, 'cluster', `${problem}; ${oneOf(clusters)}`);
  }
  const userName = context === undefined ? '' : text(context.fields, 'user');
  const user = named(users, userName);
  const isMissing = context !== undefined && userName !== '' && user === undefined;
  return {
    source,
    context: name,
    namespace: context === undefined ? '' : text(context.fields, 'namespace'),
    cluster,
    user: user ?? { kind: 'user', name: userName, fields: {}, source, lines: {} },
    missingUser: isMissing
      ? entryError(context, 'user', `is ${JSON.stringify(userName)}, which is not there; ${oneOf(users)}`)
      : undefined,
  };
}

const ANOTHER = 'name a kubeconfig, such as kubectl uses';

/** A file of another kind has none of the sections that kubectl reads. */
function whyNoContext({ clusters, contexts, users }: Kubeconfig): string {
  return [clusters, contexts, users].every(({ length }) => length === 0)
    ? `is not a kubeconfig: it has no clusters, users and contexts; ${ANOTHER}`
    : `has no current-context; choose one of: ${namesOf(contexts)}, with "kubectl config use-context"`;
}

function oneOf(entries: readonly NamedEntry[]): string {
  return entries.length === 0 ? 'add it, for there is none' : `choose one of: ${namesOf(entries)}`;
}

function named(entries: readonly NamedEntry[], name: string): NamedEntry | undefined {
  return entries.find((entry) => entry.name === name);
}

function namesOf(entries: readonly NamedEntry[]): string {
  const names = entries.map(({ name }) => name || '(unnamed)');
  return names.length === 0 ? 'none' : names.slice(0, 20).join(', ');
}

/** A string of an entry, undefined when it is missing or empty. */
export function textOf(object: JsonObject, key: string): string | undefined {
  return text(object, key) || undefined;
}

/** Throws `TerminalError`, which names the field of the kubeconfig and the file. */
export function readTextFile(path: string, entry: NamedEntry, field: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const problem = `names a file that cannot be read, ${path}: ${fileProblem(cause)}; correct the path`;
    throw entryError(entry, field, problem, cause);
  }
}
