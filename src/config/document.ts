/** A configuration file as a JSON value, with the position of each member in the text. */

import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Scalar,
  visit,
  type Alias,
  type Pair,
  type ParsedNode,
} from 'yaml';
import { exactInteger, type JsonObject, type JsonValue, isJsonObject, setOwn } from '../base/json.ts';
import type { ConfigProblem } from '../base/errors.ts';
import { type ConfigPath, type Finding, formatPath } from './finding.ts';
import {
  createSourceFile,
  positionOf,
  problemAt,
  type SourceFile,
  DEPTH_MAX,
  readYaml,
  readYamlDocuments,
  type SyntaxProblem,
  Unreadable,
  type YamlSource,
} from './source-file.ts';

/** Values in the file with aliases expanded. Limits the memory of a small file that repeats aliases. */
const VALUES_MAX = 200_000;

type ParsedPair = Pair<ParsedNode, ParsedNode | null>;

/** A member of a mapping or an entry of a list: its JSON value and where it is in the text. */
interface Member {
  readonly json: JsonValue;
  /** The key, or the entry itself. */
  readonly key: ParsedNode | null;
  /** With aliases resolved. */
  readonly value: ParsedNode | null;
}

/**
 * Reads YAML or JSON. Never throws: every error is in `problems`. With `listKey`, a file that is a list stands for a mapping with the list
 * under this key.
 */
export function readDocument(name: string, text: string, listKey?: string): ConfigDocument {
  return new ConfigDocument(createSourceFile(name, text), readYaml(text), { listKey });
}

/** Reads each document of a text, and calls `onDocument` with the offset of its end. `shape`: the error for one that is not a mapping. */
export function* readDocuments(
  name: string,
  text: string,
  { shape, onDocument }: { readonly shape: string; readonly onDocument?: (end: number) => void },
): Generator<ConfigDocument> {
  const source = createSourceFile(name, text);
  // Without aliases, no text has more values than characters.
  const valuesMax = VALUES_MAX + text.length;
  for (const { end, ...parsed } of readYamlDocuments(text)) {
    onDocument?.(end);
    yield new ConfigDocument(source, parsed, { valuesMax, shape });
  }
}

interface DocumentOptions {
  readonly listKey?: string | undefined;
  readonly valuesMax?: number;
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
  readonly #root: ParsedNode | null;
  readonly #findings: SyntaxProblem[] = [];
  readonly #targets = new Map<Alias, ParsedNode | undefined>();
  /** Of each mapping and list in `value`. Aliases and merge keys are followed once, when these are filled. */
  readonly #members = new Map<JsonValue, ReadonlyMap<string | number, Member>>();
  readonly #duplicates = new Set<ParsedNode>();
  readonly #valuesMax: number;
  #valuesLeft: number;

  constructor(source: SourceFile, { root, problems }: YamlSource, options: DocumentOptions) {
    const { valuesMax = VALUES_MAX } = options;
    this.source = source;
    this.isEmpty = root === null || (isScalar(root) && root.value === null);
    this.#valuesMax = valuesMax;
    this.#valuesLeft = valuesMax;
    this.#root = root;
    const isWellFormed = !problems.some(({ severity }) => severity === 'error');
    const value = isWellFormed ? this.#toObject(root, options) : undefined;
    this.value = value ?? {};
    this.isReadable = value !== undefined;
    this.problems = [...problems, ...this.#findings];
  }

  /**
   * Offset of the value at a path, or of the character `index` inside the text that is the value. The nearest enclosing key when the path
   * does not exist.
   */
  offsetOfValue(path: ConfigPath, index?: number): number {
    const { member, depth } = this.#find(path);
    const { key, value } = member;
    if (depth < path.length || value === null) return startOf(key);
    return index !== undefined && isScalar(value)
      ? offsetInScalar(this.source.text, value, index)
      : startOf(value);
  }

  /** Offset of the key (or list entry) at a path, or of the nearest enclosing one that exists. */
  offsetOfKey(path: ConfigPath): number {
    return startOf(this.#find(path).member.key);
  }

  /** The finding with its position in this file. */
  problemOf({ path, severity, message, at, index }: Finding): ConfigProblem {
    const offset = at === 'key' ? this.offsetOfKey(path) : this.offsetOfValue(path, index);
    return problemAt(this.source, offset, { path: formatPath(path), severity, message });
  }

  /** How many steps of the path exist. */
  depthOf(path: ConfigPath): number {
    return this.#find(path).depth;
  }

  #find(path: ConfigPath): { readonly member: Member; readonly depth: number } {
    let member: Member = { json: this.value, key: this.#root, value: this.#root };
    for (const [depth, step] of path.entries()) {
      const next = this.#members.get(member.json)?.get(step);
      if (next === undefined) return { member, depth };
      member = next;
    }
    return { member, depth: path.length };
  }

  /** The whole file; undefined (and a problem) if it is not a mapping. */
  #toObject(root: ParsedNode | null, { listKey, shape }: DocumentOptions): JsonObject | undefined {
    if (root === null || this.isEmpty) return {};
    try {
      this.#bindAliases(root);
      const json = this.#toJson(root, 0);
      if (isJsonObject(json)) return json;
      if (!isSeq(root) || listKey === undefined)
        throw new Unreadable(root.range[0], shape ?? 'the file must be a mapping of keys to values');
      const whole = { [listKey]: json };
      // The key is not in the text.
      this.#members.set(whole, new Map([[listKey, { json, key: root, value: root }]]));
      return whole;
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      this.#findings.push(error.problem);
      return undefined;
    }
  }

  /** An alias means the latest anchor of its name before it. The library would search the whole file for each alias. */
  #bindAliases(root: ParsedNode): void {
    const anchors = new Map<string, ParsedNode>();
    visit(root, (_, node) => {
      if (isAlias(node)) this.#targets.set(node, anchors.get(node.source));
      else if (isNode(node) && node.anchor !== undefined) anchors.set(node.anchor, node as ParsedNode); // below a parsed root
    });
  }

  #toJson(node: ParsedNode | null, depth: number): JsonValue {
    if (node === null) return null;
    this.#valuesLeft -= 1;
    const fail = (message: string): never => {
      throw new Unreadable(node.range[0], message);
    };
    if (this.#valuesLeft < 0) return fail(`more than ${this.#valuesMax} values after aliases are expanded`);
    if (depth > DEPTH_MAX)
      return fail(`more than ${DEPTH_MAX} levels of nesting, or an alias that contains itself`);
    if (isAlias(node)) return this.#toJson(this.#targetOf(node), depth + 1);
    if (isMap(node)) return this.#toJsonObject(node.items, depth);
    if (!isSeq(node)) return scalarToJson(node);
    const members = node.items.map((item) => this.#member(item, item, depth));
    const list = members.map(({ json }) => json);
    this.#members.set(list, new Map(members.entries()));
    return list;
  }

  #toJsonObject(pairs: readonly ParsedPair[], depth: number): JsonObject {
    const members = new Map<string | number, Member>();
    for (const pair of pairs.filter((one) => !isMergeKey(one))) {
      const key = this.#keyOf(pair.key);
      const first = members.get(key);
      if (first !== undefined) this.#reportDuplicate(key, pair.key, first);
      members.set(key, this.#member(pair.key, pair.value, depth));
    }
    for (const source of pairs.filter(isMergeKey).flatMap(({ value }) => this.#mergeSources(value))) {
      const merged = this.#toJson(source, depth + 1);
      if (!isJsonObject(merged)) throw new Unreadable(startOf(source), '"<<" merges mappings only');
      for (const [key, member] of this.#members.get(merged) ?? []) {
        if (!members.has(key)) members.set(key, member);
      }
    }
    const object: JsonObject = {};
    for (const [key, { json }] of members) setOwn(object, String(key), json);
    this.#members.set(object, members);
    return object;
  }

  #member(key: ParsedNode, value: ParsedNode | null, depth: number): Member {
    return { json: this.#toJson(value, depth + 1), key, value: this.#resolved(value) };
  }

  /** Reported once, even if several aliases refer to the mapping. The check of the library takes quadratic time. */
  #reportDuplicate(key: string, node: ParsedNode, first: Member): void {
    if (this.#duplicates.has(node)) return;
    this.#duplicates.add(node);
    const { line } = positionOf(this.source, startOf(first.key));
    const message = `the key ${JSON.stringify(key)} is already set in line ${line}: remove one of the two`;
    this.#findings.push({ offset: startOf(node), severity: 'error', message });
  }

  #mergeSources(value: ParsedNode | null): readonly (ParsedNode | null)[] {
    const list = this.#resolved(value);
    return isSeq(list) ? list.items : [value];
  }

  #keyOf(node: ParsedNode): string {
    const key = isAlias(node) ? this.#targetOf(node) : node;
    if (isScalar(key)) return typeof key.value === 'string' ? key.value : key.source;
    throw new Unreadable(startOf(node), 'a key must be text');
  }

  #targetOf(alias: Alias.Parsed): ParsedNode {
    const target = this.#targets.get(alias);
    if (target !== undefined) return target;
    throw new Unreadable(
      alias.range[0],
      `the alias *${alias.source} has no anchor &${alias.source} before it`,
    );
  }

  #resolved(node: ParsedNode | null): ParsedNode | null {
    for (let hops = 0; hops < DEPTH_MAX && isAlias(node); hops += 1) node = this.#targets.get(node) ?? null;
    return node;
  }
}

function isMergeKey({ key }: ParsedPair): boolean {
  return isScalar(key) && key.type === Scalar.PLAIN && key.source === '<<';
}

function startOf(node: ParsedNode | null): number {
  return node?.range[0] ?? 0;
}

function scalarToJson(node: ParsedNode): JsonValue {
  const value: unknown = isScalar(node) ? node.value : null;
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value !== 'number') return null;
  if (Number.isFinite(value)) return exactInteger(value, isScalar(node) ? (node.source ?? '') : '');
  throw new Unreadable(node.range[0], 'a number must be finite: put it in quotes if it is text');
}

// Where in the text the n-th character of a YAML scalar's value stands: quotes, escapes, folding and indentation undone.

/** Offset in `text` of `value[index]`; the end of the scalar when the index is beyond it. */
export function offsetInScalar(text: string, scalar: Scalar.Parsed, index: number): number {
  const { type, value, range } = scalar;
  const source = text.slice(range[0], range[1]);
  const isBlock = type === Scalar.BLOCK_LITERAL || type === Scalar.BLOCK_FOLDED;
  const read = typeof value === 'string' ? value : scalar.source;
  return range[0] + (isBlock ? offsetInBlock(source, read, index) : offsetInFlow(source, type, index));
}

/** A line break in the source is one blank in the value, n breaks are n-1. Without a break, a run of blanks is one part, so that it is read once. */
const FOLD = String.raw`[ \t]*(?:\r?\n[ \t]*)+|[ \t]+`;
const CONTINUATION = String.raw`\\\r?\n[ \t]*`;
const ESCAPE = String.raw`\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)`;

/** What stands for characters of the value: in quotes, some stand for another one. */
const PLAIN = new RegExp(`${FOLD}|[^]`, 'gy');
const QUOTED = new Map<Scalar.Type | undefined, RegExp>([
  [Scalar.QUOTE_DOUBLE, new RegExp(`${FOLD}|${CONTINUATION}|${ESCAPE}|[^]`, 'gy')],
  [Scalar.QUOTE_SINGLE, new RegExp(`${FOLD}|''|[^]`, 'gy')],
]);

function offsetInFlow(source: string, type: Scalar.Type | undefined, index: number): number {
  const quoted = QUOTED.get(type);
  const start = quoted === undefined ? 0 : 1;
  const content = source.slice(start, source.length - start);
  let produced = 0;
  for (const { 0: part, index: at } of content.matchAll(quoted ?? PLAIN)) {
    const length = lengthOf(part);
    // A continued line before the character belongs to what is left of it.
    if (produced + length > index) return start + at + (isBlank(part) ? index - produced : 0);
    produced += length;
  }
  return start + content.length;
}

function isBlank(part: string): boolean {
  return /^[ \t]+$/.test(part);
}

/** Of the value. */
function lengthOf(part: string): number {
  if (isBlank(part)) return part.length;
  const breaks = part.split('\n').length - 1;
  if (part.startsWith('\\') && breaks > 0) return 0;
  const isAstral = part.startsWith('\\U') && Number.parseInt(part.slice(2), 16) > 0xffff;
  return isAstral ? 2 : Math.max(1, breaks - 1);
}

/** The visible characters after the header are those of the value, whatever the indentation and the folding. A blank stands after the one before it. */
function offsetInBlock(source: string, value: string, index: number): number {
  const header = source.indexOf('\n') + 1;
  const visible = [...source.slice(header).matchAll(/\S/g)].map(({ index: at }) => header + at);
  const before = value.slice(0, index).replaceAll(/\s/g, '').length;
  const isVisible = /\S/.test(value.charAt(index));
  return isVisible || before === 0 ? (visible[before] ?? header) : (visible[before - 1] ?? header) + 1;
}
