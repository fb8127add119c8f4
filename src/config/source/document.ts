/** A configuration file as a JSON value whose every member can be found again in the text. */

import { isAlias, isMap, isScalar, isSeq, Scalar, type Alias, type Pair, type ParsedNode } from 'yaml';
import { type JsonObject, type JsonValue, isJsonObject, setOwn } from '../../base/json.ts';
import type { ConfigPath } from './path.ts';
import { offsetInScalar } from './scalar-offset.ts';
import { createSourceFile, positionOf, type SourceFile } from './source-file.ts';
import { DEPTH_MAX, readYaml, type SyntaxProblem } from './yaml-source.ts';

export interface ConfigDocument {
  readonly source: SourceFile;
  /** Empty when the file is empty or too broken to read. */
  readonly value: JsonObject;
  /** Syntax errors, duplicate keys, what JSON cannot hold. */
  readonly problems: readonly SyntaxProblem[];
  /** False: `value` must not be looked at, the text is not well-formed. */
  readonly isReadable: boolean;
  /**
   * Offset of the value at a path, or of the character `index` inside the text that is the value. The nearest enclosing key when the path
   * does not exist.
   */
  offsetOfValue(path: ConfigPath, index?: number): number;
  /** Offset of the key (or list entry) at a path, or of the nearest enclosing one that exists. */
  offsetOfKey(path: ConfigPath): number;
  /** How many steps of the path exist. */
  depthOf(path: ConfigPath): number;
}

/** Values in the whole file with every alias written out: what keeps a small file from becoming a large one. */
const VALUES_MAX = 200_000;

/**
 * Reads YAML or JSON. Never throws: whatever is wrong is in `problems`. With `listKey`, a file that is a list stands for a mapping with
 * the list under this key.
 */
export function readDocument(name: string, text: string, listKey?: string): ConfigDocument {
  const source = createSourceFile(name, text);
  const { root, problems: syntax } = readYaml(text);
  const problems = [...syntax];
  const isBroken = syntax.some((problem) => problem.severity === 'error');
  const tree = new Tree(text, root, listKey);
  const value = isBroken ? {} : tree.toObject(source, problems);
  return {
    source,
    value: value ?? {},
    problems,
    isReadable: !isBroken && value !== undefined,
    offsetOfValue: (path, index) => tree.offsetOfValue(path, index),
    offsetOfKey: (path) => tree.offsetOfKey(path),
    depthOf: (path) => tree.depthOf(path),
  };
}

class Unusable extends Error {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

/** The parsed nodes: aliases resolved in one pass, since the library walks the whole file for each. */
class Tree {
  readonly #text: string;
  readonly #root: ParsedNode | null;
  /** The key of a list that is the whole file. */
  readonly #listKey: string | undefined;
  readonly #targets = new Map<Alias, ParsedNode | undefined>();
  #valuesLeft = VALUES_MAX;

  constructor(text: string, root: ParsedNode | null, listKey: string | undefined) {
    this.#text = text;
    this.#root = root;
    this.#listKey = isSeq(root) ? listKey : undefined;
  }

  /** The whole file; undefined (and a problem) when it is something else than a mapping. */
  toObject(source: SourceFile, problems: SyntaxProblem[]): JsonObject | undefined {
    const root = this.#root;
    if (root === null || (isScalar(root) && root.value === null)) return {};
    try {
      this.#bindAliases(root, new Map(), (offset, key, first) => {
        const { line } = positionOf(source, first);
        problems.push({
          offset,
          severity: 'error',
          message: `the key ${JSON.stringify(key)} is already set in line ${line}: remove one of the two`,
        });
      });
      const value = this.#toJson(root, 0);
      if (isJsonObject(value)) return value;
      if (this.#listKey !== undefined) return { [this.#listKey]: value };
      throw new Unusable(root.range[0], 'the file must be a mapping of keys to values');
    } catch (error) {
      if (!(error instanceof Unusable)) throw error;
      problems.push({ offset: error.offset, severity: 'error', message: error.message });
      return undefined;
    }
  }

  offsetOfValue(path: ConfigPath, index?: number): number {
    const { node, key, isFound } = this.#find(path);
    if (!isFound || node === null) return startOf(key ?? node);
    if (index !== undefined && isScalar(node)) return offsetInScalar(this.#text, node, index);
    return startOf(node);
  }

  offsetOfKey(path: ConfigPath): number {
    const { node, key } = this.#find(path);
    return startOf(key ?? node);
  }

  depthOf(path: ConfigPath): number {
    let depth = path.length;
    while (depth > 0 && !this.#find(path.slice(0, depth)).isFound) depth -= 1;
    return depth;
  }

  /** In the order of the text, as an alias means the latest anchor of its name before it. */
  #bindAliases(
    node: ParsedNode | null,
    anchors: Map<string, ParsedNode>,
    onDuplicate: (offset: number, key: string, firstOffset: number) => void,
  ): void {
    if (node === null) return;
    if (isAlias(node)) {
      this.#targets.set(node, anchors.get(node.source));
      return;
    }
    if (node.anchor !== undefined) anchors.set(node.anchor, node);
    if (isSeq(node)) {
      for (const item of node.items) this.#bindAliases(item, anchors, onDuplicate);
    } else if (isMap(node)) {
      const seen = new Map<string, number>();
      for (const pair of node.items) {
        this.#bindAliases(pair.key, anchors, onDuplicate);
        const key = this.#keyOf(pair);
        const first = seen.get(key);
        const offset = startOf(pair.key);
        if (first === undefined) seen.set(key, offset);
        else if (!isMergeKey(pair)) onDuplicate(offset, key, first);
        this.#bindAliases(pair.value, anchors, onDuplicate);
      }
    }
  }

  #toJson(node: ParsedNode | null, depth: number): JsonValue {
    if (node === null) return null;
    this.#valuesLeft -= 1;
    if (this.#valuesLeft < 0) {
      throw new Unusable(node.range[0], `more than ${VALUES_MAX} values once aliases are written out`);
    }
    if (depth > DEPTH_MAX) {
      throw new Unusable(
        node.range[0],
        `more than ${DEPTH_MAX} levels of nesting, or an alias that contains itself`,
      );
    }
    if (isAlias(node)) return this.#toJson(this.#targetOf(node), depth + 1);
    if (isSeq(node)) return node.items.map((item) => this.#toJson(item, depth + 1));
    if (isMap(node)) return this.#toJsonObject(node.items, depth);
    return scalarToJson(node);
  }

  #toJsonObject(pairs: readonly Pair<ParsedNode, ParsedNode | null>[], depth: number): JsonObject {
    const object: JsonObject = {};
    for (const pair of pairs) {
      if (!isMergeKey(pair)) setOwn(object, this.#keyOf(pair), this.#toJson(pair.value, depth + 1));
    }
    for (const source of pairs.filter(isMergeKey).flatMap((pair) => this.#mergeSources(pair))) {
      const merged = this.#toJson(source, depth + 1);
      if (!isJsonObject(merged)) throw new Unusable(startOf(source), '"<<" merges mappings only');
      for (const key of Object.keys(merged)) {
        if (!Object.hasOwn(object, key)) setOwn(object, key, merged[key] ?? null);
      }
    }
    return object;
  }

  #mergeSources(pair: Pair<ParsedNode, ParsedNode | null>): readonly (ParsedNode | null)[] {
    const value = this.#resolved(pair.value);
    return isSeq(value) ? value.items : [pair.value];
  }

  #keyOf(pair: Pair<ParsedNode, ParsedNode | null>): string {
    const key = isAlias(pair.key) ? this.#targetOf(pair.key) : pair.key;
    if (isScalar(key)) return typeof key.value === 'string' ? key.value : key.source;
    throw new Unusable(startOf(pair.key), 'a key must be text');
  }

  #targetOf(alias: Alias.Parsed): ParsedNode {
    const target = this.#targets.get(alias);
    if (target !== undefined) return target;
    throw new Unusable(alias.range[0], `the alias *${alias.source} has no anchor &${alias.source} before it`);
  }

  #resolved(node: ParsedNode | null): ParsedNode | null {
    for (let hops = 0; hops < DEPTH_MAX && isAlias(node); hops += 1) node = this.#targets.get(node) ?? null;
    return node;
  }

  /** Walks as far as the path exists. */
  #find(path: ConfigPath): { node: ParsedNode | null; key: ParsedNode | undefined; isFound: boolean } {
    let node = this.#resolved(this.#root);
    let key: ParsedNode | undefined;
    // Of a list that is the whole file, the key is not in the text.
    const steps = this.#listKey === undefined ? path : path.slice(1);
    for (const step of steps) {
      const next = this.#child(node, step);
      if (next === undefined) return { node, key, isFound: false };
      [node, key] = [this.#resolved(next.node), next.key];
    }
    return { node, key, isFound: true };
  }

  #child(
    node: ParsedNode | null,
    step: string | number,
  ): { node: ParsedNode | null; key: ParsedNode } | undefined {
    if (isSeq(node)) {
      const item = typeof step === 'number' ? node.items[step] : undefined;
      return item === undefined ? undefined : { node: item, key: item };
    }
    if (!isMap(node)) return undefined;
    const own = node.items.findLast((pair) => !isMergeKey(pair) && this.#keyOf(pair) === step);
    if (own !== undefined) return { node: own.value, key: own.key };
    for (const source of node.items.filter(isMergeKey).flatMap((pair) => this.#mergeSources(pair))) {
      const found = this.#child(this.#resolved(source), step);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

function isMergeKey(pair: Pair<ParsedNode, ParsedNode | null>): boolean {
  return isScalar(pair.key) && pair.key.type === Scalar.PLAIN && pair.key.source === '<<';
}

function startOf(node: ParsedNode | null | undefined): number {
  return node?.range[0] ?? 0;
}

function scalarToJson(node: ParsedNode): JsonValue {
  const value: unknown = isScalar(node) ? node.value : null;
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      if (Number.isFinite(value)) return value;
      throw new Unusable(node.range[0], 'a number must be finite: put it in quotes if it is text');
    default:
      return null;
  }
}
