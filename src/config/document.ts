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
  const [start, end] = scalar.range;
  const value = typeof scalar.value === 'string' ? scalar.value : scalar.source;
  if (scalar.type === Scalar.BLOCK_LITERAL || scalar.type === Scalar.BLOCK_FOLDED) {
    return offsetInBlock(text.slice(start, end), value, index) + start;
  }
  const quote = scalar.type === Scalar.QUOTE_DOUBLE ? '"' : scalar.type === Scalar.QUOTE_SINGLE ? "'" : '';
  return offsetInFlow(text.slice(start, end), quote, index) + start;
}

const FOLD = /[ \t]*(?:\r?\n[ \t]*)+/uy;
const CONTINUATION = /\\\r?\n[ \t]*/uy;
const ESCAPE = /\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)/uy;

/** Plain and quoted scalars: reads the source and counts what it stands for. */
function offsetInFlow(source: string, quote: '' | '"' | "'", index: number): number {
  const end = source.length - quote.length;
  let at = quote.length;
  let produced = 0;
  while (at < end && produced < index) {
    const step = foldAt(source, at) ?? (quote === '"' ? escapeAt(source, at) : quoteAt(source, quote, at));
    produced += step.produces;
    at += step.length;
  }
  // A continuation or a fold before the character belongs to what is left of it.
  const skipped = quote === '"' ? matchAt(CONTINUATION, source, at) : undefined;
  return Math.min(at + (skipped?.length ?? 0), Math.max(end, 0));
}

interface Step {
  readonly length: number;
  readonly produces: number;
}

/** A line break in the source is one blank in the value, n breaks are n-1. */
function foldAt(source: string, at: number): Step | undefined {
  const fold = matchAt(FOLD, source, at);
  if (fold === undefined) return undefined;
  const breaks = fold.split('\n').length - 1;
  return { length: fold.length, produces: Math.max(1, breaks - 1) };
}

function quoteAt(source: string, quote: string, at: number): Step {
  return { length: quote !== '' && source.startsWith("''", at) ? 2 : 1, produces: 1 };
}

function escapeAt(source: string, at: number): Step {
  const continuation = matchAt(CONTINUATION, source, at);
  if (continuation !== undefined) return { length: continuation.length, produces: 0 };
  const escape = matchAt(ESCAPE, source, at);
  if (escape === undefined) return { length: 1, produces: 1 };
  const isAstral = escape[1] === 'U' && Number.parseInt(escape.slice(2), 16) > 0xffff;
  return { length: escape.length, produces: isAstral ? 2 : 1 };
}

function matchAt(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0];
}

/**
 * Block scalars: the lines of the source, indentation taken off, appear in the value in order with nothing but line breaks and blanks
 * between them, whether folded or not.
 */
function offsetInBlock(source: string, value: string, index: number): number {
  const lines = contentLines(source);
  const firstLine = lines.find((line) => line.text.trim() !== '');
  if (firstLine === undefined) return 0;
  const valueLine = value.split('\n').find((line) => line.trim() !== '') ?? '';
  const indent = leadingBlanks(firstLine.text) - leadingBlanks(valueLine);
  let cursor = 0;
  let result = firstLine.start + indent;
  for (const line of lines) {
    const content = line.text.slice(indent);
    if (content.trim() === '') continue;
    const found = value.indexOf(content, cursor);
    if (found === -1 || found > index) return result;
    result = line.start + indent + Math.min(index - found, content.length);
    cursor = found + content.length;
    if (index < cursor) return result;
  }
  return result;
}

/** The lines after the header. */
function contentLines(source: string): { start: number; text: string }[] {
  const lines: { start: number; text: string }[] = [];
  let start = source.indexOf('\n') + 1;
  while (start > 0 && start < source.length) {
    const end = source.indexOf('\n', start);
    const stop = end === -1 ? source.length : end;
    lines.push({ start, text: source.slice(start, stop).replace(/\r$/u, '') });
    start = end === -1 ? 0 : end + 1;
  }
  return lines;
}

function leadingBlanks(line: string): number {
  return line.length - line.trimStart().length;
}
