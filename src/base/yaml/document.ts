/** A YAML or JSON document as a JSON value, with the position of each member in the text: what kubectl, Helm and vCluster read it as. */

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
import { type JsonObject, type JsonValue, isJsonObject, setOwn } from '../json.ts';
import { keyOfScalar } from './scalars.ts';
import { offsetInScalar } from './scalar-offset.ts';
import { DEPTH_MAX, readYaml, type SyntaxProblem, Unreadable, type YamlSource } from './source.ts';

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

export interface DuplicateKey {
  readonly key: string;
  readonly offset: number;
  /** Of the key that it repeats. */
  readonly firstOffset: number;
}

export interface DocumentLimits {
  readonly valuesMax?: number;
  readonly depthMax?: number;
}

/** A step is a key or an index. */
type Path = readonly (string | number)[];

export class YamlDocument {
  readonly text: string;
  /** Null when the text has no value or cannot be read. */
  readonly json: JsonValue;
  /** Syntax errors, and values that JSON cannot represent. */
  readonly problems: readonly SyntaxProblem[];
  readonly duplicates: readonly DuplicateKey[];
  /** False if the text is not well-formed. */
  readonly isReadable: boolean;
  /** There is nothing but comments, or null. */
  readonly isEmpty: boolean;
  readonly root: ParsedNode | null;
  readonly #targets = new Map<Alias, ParsedNode | undefined>();
  /** Of each mapping and list in `json`. Aliases and merge keys are followed once, when these are filled. */
  readonly #members = new Map<JsonValue, ReadonlyMap<string | number, Member>>();
  readonly #duplicates = new Map<ParsedNode, DuplicateKey>();
  readonly #limits: Required<DocumentLimits>;
  #valuesLeft: number;

  constructor(text: string, { root, problems }: YamlSource, limits: DocumentLimits = {}) {
    this.#limits = { valuesMax: VALUES_MAX, depthMax: DEPTH_MAX, ...limits };
    this.#valuesLeft = this.#limits.valuesMax;
    this.text = text;
    this.root = root;
    this.isEmpty = root === null || (isScalar(root) && root.value === null);
    const found = [...problems];
    this.json = found.some(({ severity }) => severity === 'error') ? null : this.#readRoot(found);
    this.isReadable = !found.some(({ severity }) => severity === 'error');
    this.problems = found;
    this.duplicates = [...this.#duplicates.values()];
  }

  /**
   * Offset of the value at a path, or of the character `index` inside the text that is the value. The nearest enclosing key when the path
   * does not exist.
   */
  offsetOfValue(path: Path, index?: number): number {
    const { member, depth } = this.#find(path);
    const { key, value } = member;
    if (depth < path.length || value === null) return startOf(key);
    return index !== undefined && isScalar(value) ? offsetInScalar(this.text, value, index) : startOf(value);
  }

  /** Offset of the key (or list entry) at a path, or of the nearest enclosing one that exists. */
  offsetOfKey(path: Path): number {
    return startOf(this.#find(path).member.key);
  }

  /** How many steps of the path exist. */
  depthOf(path: Path): number {
    return this.#find(path).depth;
  }

  #find(path: Path): { readonly member: Member; readonly depth: number } {
    let member: Member = { json: this.json, key: this.root, value: this.root };
    for (const [depth, step] of path.entries()) {
      const next = this.#members.get(member.json)?.get(step);
      if (next === undefined) return { member, depth };
      member = next;
    }
    return { member, depth: path.length };
  }

  #readRoot(problems: SyntaxProblem[]): JsonValue {
    if (this.root === null) return null;
    try {
      this.#bindAliases(this.root);
      return this.#toJson(this.root, 0);
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      problems.push(error.problem);
      return null;
    }
  }

  /** An alias means the latest anchor of its name before it. The library would search the whole file for each alias. */
  #bindAliases(root: ParsedNode): void {
    const anchors = new Map<string, ParsedNode>();
    visit(root, (_, node) => {
      if (isAlias(node)) this.#targets.set(node, anchors.get(node.source));
      else if (isNode(node) && node.anchor !== undefined) {
        const parsed = node as ParsedNode; // below a parsed root
        if (!/^[\w-]+$/u.test(node.anchor))
          throw new Unreadable(startOf(parsed), 'an anchor has letters, digits, "-" and "_" only');
        anchors.set(node.anchor, parsed);
      }
    });
  }

  #toJson(node: ParsedNode | null, depth: number): JsonValue {
    if (node === null) return null;
    this.#valuesLeft -= 1;
    const { valuesMax, depthMax } = this.#limits;
    const fail = (message: string): never => {
      throw new Unreadable(node.range[0], message);
    };
    if (this.#valuesLeft < 0) return fail(`more than ${valuesMax} values after aliases are expanded`);
    if (depth > depthMax)
      return fail(`more than ${depthMax} levels of nesting, or an alias that contains itself`);
    if (isAlias(node)) return this.#toJson(this.#targetOf(node), depth + 1);
    if (isMap(node)) return this.#toJsonObject(node.items, depth);
    if (!isSeq(node)) return this.#withoutAddedBreak(node, scalarToJson(node));
    const members = node.items.map((item) => this.#member(item, item, depth));
    const list = members.map(({ json }) => json);
    this.#members.set(list, new Map(members.entries()));
    return list;
  }

  /** The library ends a block of text at the end of the file with a line break that is not there. */
  #withoutAddedBreak({ range, type }: ParsedNode & { type?: unknown }, value: JsonValue): JsonValue {
    const isBlock = type === Scalar.BLOCK_LITERAL || type === Scalar.BLOCK_FOLDED;
    const isCut = isBlock && range[1] >= this.text.length && !this.text.endsWith('\n');
    return isCut && typeof value === 'string' && value.endsWith('\n') ? value.slice(0, -1) : value;
  }

  /** In the order of the text: a merge key replaces what is set before it, and what comes after it replaces what it merged. */
  #toJsonObject(pairs: readonly ParsedPair[], depth: number): JsonObject {
    const members = new Map<string | number, Member>();
    const own = new Map<string, ParsedNode>();
    for (const pair of pairs) {
      const problem = keyProblem(this.text, pair.key, pair.value);
      if (problem !== undefined) throw new Unreadable(pair.key.range[1], problem);
      if (isMergeKey(pair)) {
        for (const source of this.#mergeSources(pair.value).toReversed()) {
          for (const [name, member] of this.#mergedMembers(source, depth)) members.set(name, member);
        }
        continue;
      }
      const key = this.#keyOf(pair.key);
      const first = own.get(key);
      if (first !== undefined) this.#reportDuplicate(key, pair.key, first);
      own.set(key, pair.key);
      members.set(key, this.#member(pair.key, pair.value, depth));
    }
    const object: JsonObject = {};
    for (const [key, { json }] of members) setOwn(object, String(key), json);
    this.#members.set(object, members);
    return object;
  }

  #member(key: ParsedNode, value: ParsedNode | null, depth: number): Member {
    return { json: this.#toJson(value, depth + 1), key, value: this.#resolved(value) };
  }

  /** Noted once, even if several aliases refer to the mapping. The check of the library takes quadratic time. */
  #reportDuplicate(key: string, node: ParsedNode, first: ParsedNode): void {
    this.#duplicates.set(node, { key, offset: startOf(node), firstOffset: startOf(first) });
  }

  #mergedMembers(source: ParsedNode | null, depth: number): ReadonlyMap<string | number, Member> {
    const merged = this.#toJson(source, depth + 1);
    if (!isJsonObject(merged)) throw new Unreadable(startOf(source), '"<<" merges mappings only');
    return this.#members.get(merged) ?? new Map();
  }

  /** The first counts before the next. */
  #mergeSources(value: ParsedNode | null): readonly (ParsedNode | null)[] {
    return isSeq(value) ? value.items : [value];
  }

  #keyOf(node: ParsedNode): string {
    const key = isAlias(node) ? this.#targetOf(node) : node;
    const name = isScalar(key) ? nameOf(key) : undefined;
    if (name !== undefined) return name;
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
    for (let hops = 0; hops < this.#limits.depthMax && isAlias(node); hops += 1)
      node = this.#targets.get(node) ?? null;
    return node;
  }
}

/** The first document of a text, without a byte order mark. Never throws: every error is in `problems`. */
export function parseYaml(text: string, limits: DocumentLimits = {}): YamlDocument {
  const content = text.startsWith('\ufeff') ? text.slice(1) : text;
  return new YamlDocument(content, readYaml(content, limits.depthMax), limits);
}

function isMergeKey({ key }: ParsedPair): boolean {
  return isScalar(key) && key.type === Scalar.PLAIN && key.source === '<<' && key.tag === undefined;
}

/** What Go's parser refuses of a key, and what the library would leave out. */
function keyProblem(text: string, key: ParsedNode, value: ParsedNode | null): string | undefined {
  const [start, end] = key.range;
  const before = text.slice(Math.max(0, start - 100), start);
  const isExplicit = /(?:^|[\s[{,])\?\s*$/u.test(before);
  if (isExplicit) {
    const isAlone = value === null || value.range[0] === value.range[1];
    return isAlone ? 'a key after "?" needs a value' : undefined;
  }
  if (isScalar(key) && key.type === Scalar.PLAIN && /^:[,[\]{}?]/u.test(text.slice(end, end + 2)))
    return 'the ":" after a key needs a blank after it';
  const after = /^\s*/u.exec(text.slice(end, end + 100))?.[0] ?? '';
  const isTorn = after.includes('\n') && text[end + after.length] === ':';
  const hasProperties = key.tag !== undefined || (!isAlias(key) && key.anchor !== undefined);
  if (hasProperties && before.includes('\n', before.trimEnd().length))
    return 'a key and its tag must be on one line';
  return isTorn || text.slice(start, end).includes('\n')
    ? 'a key and its ":" must be on one line'
    : undefined;
}

function startOf(node: ParsedNode | null): number {
  return node?.range[0] ?? 0;
}

function nameOf({ value, source, tag, type }: Scalar.Parsed): string | undefined {
  if (tag !== undefined && OTHER_TYPES.includes(tag)) return undefined;
  if (typeof value === 'string') return value;
  return tag === undefined && type === Scalar.PLAIN ? keyOfScalar(source) : undefined;
}

/** Tags with a meaning of their own: `!` is none to Go's parser, and it decodes `!!binary`. */
const OTHER_TYPES = ['!', ...['binary', 'merge', 'timestamp'].map((name) => `tag:yaml.org,2002:${name}`)];

function scalarToJson(node: ParsedNode): JsonValue {
  const value: unknown = isScalar(node) ? node.value : null;
  if (node.tag !== undefined && OTHER_TYPES.includes(node.tag))
    throw new Unreadable(node.range[0], 'a value with this tag has no meaning here: remove the tag');
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new Unreadable(node.range[0], 'a number must be finite: put it in quotes if it is text');
  return value as JsonValue; // of the tags of the schema
}
