/** Translates label selectors in both directions: plain maps, LabelSelector objects and selector strings. Only keys change. */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';
import { printSelector, selectorRequirements, UnexpectedToken } from '../../kube/label-selector.ts';
import type { LabelTranslator } from './types.ts';

/** Not a label selector; the message says why, in one line. */
export class SelectorError extends Error {
  override readonly name = 'SelectorError';
}

/** Throws {@link SelectorError} for a value that is not a label selector. Never changes its input. */
export function selectorToHost(selector: JsonValue, translator: LabelTranslator): JsonValue {
  return mapSelector(selector, (key) => translator.keyToHost(key));
}

export function selectorToVirtual(selector: JsonValue, translator: LabelTranslator): JsonValue {
  return mapSelector(selector, (key) => translator.keyToVirtual(key));
}

type MapKey = (key: string) => string;

function mapSelector(selector: JsonValue, mapKey: MapKey): JsonValue {
  if (typeof selector === 'string') return mapText(selector, mapKey);
  if (!isJsonObject(selector)) {
    const found = selector === null ? 'null' : Array.isArray(selector) ? 'a list' : `a ${typeof selector}`;
    throw new SelectorError(
      `a label selector is a map of labels, a LabelSelector or a selector string, this is ${found}`,
    );
  }
  return isLabelSelector(selector) ? mapLabelSelector(selector, mapKey) : mapKeys(selector, mapKey);
}

function mapText(text: string, mapKey: MapKey): string {
  try {
    const requirements = [...selectorRequirements(text)];
    return printSelector(requirements.map((one) => ({ ...one, key: mapKey(one.key) })));
  } catch (error) {
    if (!(error instanceof UnexpectedToken)) throw error;
    const found = error.found === '' ? 'the end' : `"${error.found}" at ${error.column}`;
    const wanted = EXPECTED[error.expected];
    throw new SelectorError(`"${text}" is not a label selector: found ${found}, expected ${wanted}`);
  }
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

/** A plain map may have a label named `matchLabels`, but its value is a string then. */
function isLabelSelector(selector: JsonObject): boolean {
  return (
    isJsonObject(ownValue(selector, 'matchLabels')) || Array.isArray(ownValue(selector, 'matchExpressions'))
  );
}

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
