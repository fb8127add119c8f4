/** Translates label selectors: plain maps, LabelSelector objects, JSON texts of them and selector strings. Only keys change, and a selector that no
 * API server takes is none. */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';
import {
  checkValues,
  printSelector,
  SelectorError,
  selectorRequirements,
  UnexpectedToken,
} from '../../kube/label-selector.ts';
import { isLabelSelector, selectorViolations } from '../../kube/label-selector-rules.ts';
import { labelKeyProblem } from '../../kube/names.ts';
import type { ConcretePath } from '../translate/types.ts';
import { JsonText } from './json-text.ts';
import { printPath } from './path-syntax.ts';
import { UntranslatableValue } from './reference-parts.ts';
import type { ValueMode } from './types.ts';
import { wordingOf } from './violation-wording.ts';

type MapKey = (key: string) => string;

/** The mode `labels`: the value is a label selector. */
export const labelsMode: ValueMode = {
  kind: 'value',
  mode: 'labels',
  translate: (value, { direction, labels }) =>
    translateSelector(value, direction === 'toHost' ? labels.keyToHost : labels.keyToVirtual),
};

/** Throws {@link UntranslatableValue} for a value that is not a label selector. */
export function translateSelector(selector: JsonValue, mapKey: MapKey): JsonValue {
  if (typeof selector !== 'string') return mapSelector(selector, mapKey);
  const text = JsonText.read(selector);
  if (text === undefined) return mapText(selector, mapKey);
  if ('problem' in text) throw new UntranslatableValue(text.problem);
  return mapJsonText(text, mapKey);
}

/** Only the keys change, unless two of them become one. */
function mapJsonText(text: JsonText, mapKey: MapKey): string {
  const mapped = mapSelector(text.content, mapKey);
  const keys = selectorKeys(text.content);
  if (selectorKeys(mapped).length !== keys.length) return JSON.stringify(mapped);
  return text.with(
    keys
      .map((one) => ({ ...one, literal: JSON.stringify(mapKey(one.key)) }))
      .filter(({ key, literal }) => literal !== JSON.stringify(key)),
  );
}

/** Where a selector has its label keys: as keys of members, or as the values of members `key`. */
function selectorKeys(
  selector: JsonValue,
): readonly { readonly place: ConcretePath; readonly key: string; readonly isKey: boolean }[] {
  if (!isJsonObject(selector)) return [];
  const keysAt = (map: JsonObject, above: ConcretePath) =>
    Object.keys(map).map((key) => ({ place: [...above, key], key, isKey: true }));
  if (!isLabelSelector(selector)) return keysAt(selector, []);
  const [labels, expressions] = ['matchLabels', 'matchExpressions'].map((member) =>
    ownValue(selector, member),
  );
  const requirements = Array.isArray(expressions) ? expressions : [];
  return [
    ...(isJsonObject(labels) ? keysAt(labels, ['matchLabels']) : []),
    ...requirements.flatMap((one, at) => {
      const key = isJsonObject(one) ? ownValue(one, 'key') : undefined;
      return typeof key === 'string' ? [{ place: ['matchExpressions', at, 'key'], key, isKey: false }] : [];
    }),
  ];
}

function mapSelector(selector: JsonValue, mapKey: MapKey): JsonValue {
  if (!isJsonObject(selector)) {
    const found = selector === null ? 'null' : Array.isArray(selector) ? 'a list' : `a ${typeof selector}`;
    throw new UntranslatableValue(
      `a label selector is a map of labels, a LabelSelector or a selector string, this is ${found}`,
    );
  }
  const [violation] = selectorViolations(selector);
  if (violation !== undefined) {
    const { path } = violation;
    throw new UntranslatableValue(
      `this is not a label selector: ${printPath(path)}: ${wordingOf(violation)}${hint(path)}`,
    );
  }
  return isLabelSelector(selector) ? mapLabelSelector(selector, mapKey) : mapKeys(selector, mapKey);
}

/** One step too few, or another case, as in Kubernetes' own members. */
function hint([first]: ConcretePath): string {
  const known = ['matchLabels', 'matchExpressions'].find(
    (member) => member !== first && member.toLowerCase() === String(first).toLowerCase(),
  );
  return known === undefined ? '' : `; did you mean ${known}?`;
}

function mapText(text: string, mapKey: MapKey): string {
  try {
    const requirements = [...selectorRequirements(text)];
    for (const requirement of requirements) {
      checkKey(requirement.key, text);
      checkValues(requirement);
    }
    return printSelector(requirements.map((one) => ({ ...one, key: mapKey(one.key) })));
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error;
    if (!(error instanceof UnexpectedToken))
      throw new UntranslatableValue(`"${text}" is not a label selector: ${error.message}`);
    const found = error.found === '' ? 'the end' : `"${error.found}" at ${error.column}`;
    const wanted = EXPECTED[error.expected];
    throw new UntranslatableValue(`"${text}" is not a label selector: found ${found}, expected ${wanted}`);
  }
}

function checkKey(key: string, selector: string): void {
  const problem = labelKeyProblem(key);
  if (problem === undefined) return;
  const [name = '', value] = key.split(':');
  const hint = value !== undefined && labelKeyProblem(name) === undefined ? `; write ${name}=${value}` : '';
  throw new UntranslatableValue(
    `"${selector}" is not a label selector: "${key}" is not a label key: ${problem}${hint}`,
  );
}

const EXPECTED: Readonly<Record<UnexpectedToken['expected'], string>> = {
  first: 'a label key',
  next: 'a label key',
  key: 'a label key',
  value: 'a value',
  operator: 'an operator or ","',
  '(': '"("',
  ')': '")"',
  ',': '","',
};

function mapLabelSelector(selector: JsonObject, mapKey: MapKey): JsonObject {
  const result: JsonObject = {};
  for (const [member, value] of Object.entries(selector)) {
    if (member === 'matchLabels' && isJsonObject(value)) setOwn(result, member, mapKeys(value, mapKey));
    else if (member === 'matchExpressions' && Array.isArray(value)) {
      result[member] = value.map((expression) => mapExpression(expression, mapKey));
    } else setOwn(result, member, value);
  }
  return result;
}

function mapExpression(expression: JsonValue, mapKey: MapKey): JsonValue {
  if (!isJsonObject(expression)) return expression;
  const key = ownValue(expression, 'key');
  return typeof key === 'string' ? { ...expression, key: mapKey(key) } : expression;
}

/** A key that is translated now wins over one that was translated before: it is what the user wrote. */
function mapKeys(labels: JsonObject, mapKey: MapKey): JsonObject {
  const result: JsonObject = {};
  const renamed: [string, JsonValue][] = [];
  for (const [key, value] of Object.entries(labels)) {
    const mapped = mapKey(key);
    if (mapped === key) setOwn(result, key, value);
    else renamed.push([mapped, value]);
  }
  for (const [key, value] of renamed) setOwn(result, key, value);
  return result;
}
