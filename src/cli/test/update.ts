/** Writes the actual results as the expectations of a test file, in place; comments and correct expectations stay. */

import {
  isMap,
  isNode,
  isScalar,
  isSeq,
  visit,
  type Document,
  type Node,
  type ToStringOptions,
  type YAMLMap,
} from 'yaml';
import { findPair } from 'yaml/util';
import { editableYaml } from '../../base/yaml/write.ts';
import { isJsonObject, jsonEquals, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import { ENTRY_RULES, EXPECTED_MEMBERS, type Outcome, type CaseRun, withPartialTexts } from './run-case.ts';
import type { Expectation, TestFile } from './test-file.ts';

type Path = readonly (string | number)[];

/** The new text of the file; the same text where every expectation holds. `runs` are those of its cases, in order. */
export function updatedText({ text, cases }: TestFile, runs: readonly CaseRun[]): string {
  const document = editableYaml(text);
  unshareExpectations(document, cases.length);
  let isChanged = false;
  for (const [index, test] of cases.entries()) {
    const run = runs[index];
    if (run === undefined) continue;
    const at = ['cases', index];
    const isBare = Object.keys(test.expect).length === 0 && test.reverse === undefined && !test.roundTrip;
    const expect = isBare ? bareExpectation(run.forward) : test.expect;
    if (isBare) document.setIn([...at, 'expect'], document.createNode(expect));
    const isForward = updateExpectation(document, [...at, 'expect'], expect, run.forward);
    const isReverse =
      test.reverse !== undefined &&
      run.reverse !== undefined &&
      updateExpectation(document, [...at, 'reverse', 'expect'], test.reverse, run.reverse);
    isChanged ||= isBare || isForward || isReverse;
  }
  return isChanged ? document.toString(styleOf(text)) : text;
}

/** Writes out the aliases and merge keys that expectations share, so that the correction of one changes no other and no input. */
function unshareExpectations(document: Document, cases: number): void {
  const expected = new Set<Node>();
  const add = (node: Node): void => visit(node, { Node: (_, one) => void expected.add(one) });
  for (let index = 0; index < cases; index++) {
    for (const path of [['expect'], ['reverse', 'expect']]) {
      const node = document.getIn(['cases', index, ...path], true);
      if (isNode(node)) add(node);
    }
  }
  visit(document, {
    Alias(_, alias) {
      const source = alias.resolve(document);
      if (source === undefined || (!expected.has(alias) && !expected.has(source))) return undefined;
      const copy = source.clone() as Node; // a clone of a node
      visit(copy, { Node: (_key, one) => void ('anchor' in one && delete one.anchor) });
      if (expected.has(alias)) add(copy);
      return copy;
    },
  });
  for (const node of expected) if (isMap(node)) mergeIn(node);
}

/** Replaces the merge keys of a mapping by what they merge. It replaces what is set before it; of several sources, the first counts. */
function mergeIn(map: YAMLMap): void {
  for (;;) {
    const at = map.items.findIndex(({ key }) => isScalar(key) && key.value === '<<' && key.type === 'PLAIN');
    const value = map.items[at]?.value;
    if (at < 0) return;
    const merged: YAMLMap['items'] = [];
    for (const source of isSeq(value) ? value.items : [value]) {
      if (!isMap(source)) continue;
      mergeIn(source);
      for (const pair of source.items)
        if (findPair(merged, pair.key) === undefined) merged.push(pair.clone());
    }
    const [before, after] = [map.items.slice(0, at), map.items.slice(at + 1)];
    map.items = [
      ...before.filter(({ key }) => findPair(merged, key) === undefined),
      ...merged.filter(({ key }) => findPair(after, key) === undefined),
      ...after,
    ];
  }
}

/** A case without expectations gets the whole outcome. */
function bareExpectation({ host, skipped, errors }: Outcome): Expectation {
  return { host, ...(skipped.length > 0 && { skipped }), ...(errors.length > 0 && { errors }) };
}

function updateExpectation(document: Document, at: Path, expect: Expectation, actual: Outcome): boolean {
  const changes = EXPECTED_MEMBERS.map((member) => {
    const expected = expect[member] ?? (member === 'errors' && actual.errors.length > 0 ? [] : undefined);
    return (
      expected !== undefined && updateEntries(document, [...at, member], expected, actual[member], member)
    );
  });
  return changes.includes(true);
}

/** Entries with an actual counterpart are corrected; the others are replaced by the actual entries without a counterpart. */
function updateEntries(
  document: Document,
  at: Path,
  expected: readonly JsonObject[],
  actual: readonly JsonObject[],
  member: keyof Expectation,
): boolean {
  const { isSame } = ENTRY_RULES[member];
  let isChanged = false;
  const matched = new Set<JsonObject>();
  const gone: number[] = [];
  for (const [index, entry] of expected.entries()) {
    const found = actual.find((candidate) => isSame(entry, candidate));
    if (found === undefined) gone.push(index);
    else {
      matched.add(found);
      if (updateValue(document, [...at, index], entry, withPartialTexts(entry, found))) isChanged = true;
    }
  }
  for (const index of gone.toReversed()) document.deleteIn([...at, index]);
  const added = gone.length > 0 || expected.length === 0 ? actual.filter((entry) => !matched.has(entry)) : [];
  if (added.length > 0) appendTo(document, at, added);
  return isChanged || gone.length > 0 || added.length > 0;
}

function appendTo(document: Document, at: Path, entries: readonly JsonObject[]): void {
  const list = document.getIn(at, true);
  if (!isSeq(list)) {
    document.setIn(at, document.createNode(entries));
    return;
  }
  // An empty list is written as [], which would put whole objects on one line.
  if (list.items.length === 0) list.flow = false;
  for (const entry of entries) list.add(document.createNode(entry));
}

function updateValue(
  document: Document,
  at: Path,
  expected: JsonValue,
  actual: JsonValue | undefined,
): boolean {
  if (isJsonObject(expected) && isJsonObject(actual)) {
    return Object.keys(expected)
      .map((key) => updateValue(document, [...at, key], expected[key] ?? null, ownValue(actual, key)))
      .includes(true);
  }
  if (Array.isArray(expected) && Array.isArray(actual) && expected.length === actual.length) {
    return expected
      .map((element, index) => updateValue(document, [...at, index], element, actual[index]))
      .includes(true);
  }
  if (jsonEquals(expected, actual) || (expected === null && actual === undefined)) return false;
  if (actual !== undefined) document.setIn(at, document.createNode(actual));
  else if (isMap(document.getIn(at.slice(0, -1)))) document.setIn(at, null);
  else document.deleteIn(at);
  return true;
}

/** The style of the file as far as it is recognisable, so that a diff shows only what has changed. */
function styleOf(text: string): ToStringOptions {
  return {
    lineWidth: 0,
    flowCollectionPadding: /\{ /u.test(text),
    indentSeq: !/^(\s*)[\w"'.-]+:\n\1- /mu.test(text),
  };
}
