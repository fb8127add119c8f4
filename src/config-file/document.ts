/** A configuration file as a JSON object, with the position of each member in the text. */

import type { ConfigProblem } from '../base/errors.ts';
import { type JsonObject, isJsonObject, valueAt } from '../base/json.ts';
import { parseYaml, YamlDocument } from '../base/yaml/document.ts';
import { readYamlDocuments, type SyntaxProblem } from '../base/yaml/source.ts';
import { type ConfigPath, type Finding, formatPath } from './finding.ts';
import { createSourceFile, positionOf, problemAt, type SourceFile } from './source-file.ts';

/** Above those that a text without aliases can have. */
const MORE_VALUES_MAX = 200_000;

/** Reads YAML or JSON. Never throws: every error is in `problems`. */
export function readDocument(name: string, text: string, options: DocumentOptions = {}): ConfigDocument {
  return new ConfigDocument(createSourceFile(name, text), parseYaml(text), options);
}

/** Reads each document of a text, and calls `onDocument` with the offset of its end. `shape`: the error for one that is not a mapping. */
export function* readDocuments(
  name: string,
  text: string,
  { shape, onDocument }: { readonly shape: string; readonly onDocument?: (end: number) => void },
): Generator<ConfigDocument> {
  const source = createSourceFile(name, text);
  // Without aliases, no text has more values than characters.
  const valuesMax = MORE_VALUES_MAX + text.length;
  for (const { end, ...parsed } of readYamlDocuments(text)) {
    onDocument?.(end);
    yield new ConfigDocument(source, new YamlDocument(text, parsed, { valuesMax }), { shape });
  }
}

interface DocumentOptions {
  /** A file that is a list stands for a mapping with the list under this key. */
  readonly listKey?: string;
  /** The document is the mapping under this key of the file, which has it. */
  readonly below?: string | undefined;
  readonly shape?: string;
}

export class ConfigDocument {
  readonly source: SourceFile;
  /** Empty when the file is empty or cannot be parsed. */
  readonly value: JsonObject;
  /** Syntax errors, duplicate keys, values that JSON cannot represent. */
  readonly problems: readonly SyntaxProblem[];
  /** False if the text is not well-formed; `value` is empty then. */
  readonly isReadable: boolean;
  /** There is nothing but comments, or null. */
  readonly isEmpty: boolean;
  readonly #document: YamlDocument;
  /** Of the list that the file is. It is not in the text. */
  readonly #listKey: string | undefined;
  readonly #below: ConfigPath;

  constructor(source: SourceFile, document: YamlDocument, { listKey, below, shape }: DocumentOptions) {
    const { isEmpty, isReadable, problems } = document;
    const json = below === undefined ? document.json : valueAt(document.json, [below]);
    const isList = Array.isArray(json) && listKey !== undefined;
    const value = isList ? { [listKey]: json } : isEmpty ? {} : json;
    this.source = source;
    this.#document = document;
    this.#listKey = isList ? listKey : undefined;
    this.#below = below === undefined ? [] : [below];
    this.isEmpty = isEmpty;
    this.value = isReadable && isJsonObject(value) ? value : {};
    this.isReadable = isReadable && isJsonObject(value);
    this.problems = [...problems, ...this.#duplicateKeys()];
    if (!isReadable || this.isReadable) return;
    const message = shape ?? 'the file must be a mapping of keys to values: write lines such as "key: value"';
    const offset = document.offsetOfValue([]);
    this.problems = [...this.problems, { offset, severity: 'error', message, code: 'no mapping' }];
  }

  #duplicateKeys(): SyntaxProblem[] {
    return this.#document.duplicates.map(({ key, offset, firstOffset }) => {
      const { line } = positionOf(this.source, firstOffset);
      const message = `the key ${JSON.stringify(key)} is already set in line ${line}: remove one of the two`;
      return { offset, severity: 'error', message, code: 'duplicate key' };
    });
  }

  /**
   * Offset of the value at a path, or of the character `index` inside the text that is the value. The nearest enclosing key when the path
   * does not exist.
   */
  offsetOfValue(path: ConfigPath, index?: number): number {
    return this.#document.offsetOfValue(this.#inText(path), index);
  }

  /** Offset of the key (or list entry) at a path, or of the nearest enclosing one that exists. */
  offsetOfKey(path: ConfigPath): number {
    return this.#document.offsetOfKey(this.#inText(path));
  }

  /** The finding with its position in this file. */
  problemOf({ path, severity, message, at, index }: Finding): ConfigProblem {
    const offset = at === 'key' ? this.offsetOfKey(path) : this.offsetOfValue(path, index);
    return problemAt(this.source, offset, { path: formatPath([...this.#below, ...path]), severity, message });
  }

  /** How many steps of the path exist. */
  depthOf(path: ConfigPath): number {
    const steps = this.#inText(path);
    return this.#document.depthOf(steps) + path.length - steps.length;
  }

  #inText(path: ConfigPath): ConfigPath {
    const steps = this.#listKey !== undefined && path[0] === this.#listKey ? path.slice(1) : path;
    return [...this.#below, ...steps];
  }
}
