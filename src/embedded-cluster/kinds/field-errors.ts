/** Violations of the rules of a kind, as the errors and warnings of a kube-apiserver. */

import {
  duplicateValue,
  forbiddenValue,
  invalidValue,
  requiredValue,
  tooManyItems,
  unsupportedValue,
  type FieldError,
} from '../../apiserver/status.ts';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import { Field, type FieldPath, type FieldRule, type Violation } from '../../kube/field-rules.ts';

export function fieldErrors(object: JsonObject, rules: readonly FieldRule[]): FieldError[] {
  return Field.violations(rules, object, undefined).map(fieldError);
}

/** `undefined`: nothing to warn of. */
export function fieldWarning(field: string, warning: string | undefined): string[] {
  return warning === undefined ? [] : [`${field}: ${warning}`];
}

/** Of each item of a list of texts. */
export function itemWarnings(
  field: string,
  items: readonly JsonValue[],
  warningOf: (item: string) => string | undefined,
): string[] {
  return items.flatMap((item, index) =>
    typeof item === 'string' ? fieldWarning(`${field}[${index}]`, warningOf(item)) : [],
  );
}

function fieldError(violation: Violation): FieldError {
  const { value } = violation;
  const field = fieldName(violation.field);
  switch (violation.reason) {
    case 'Type':
    case 'Invalid':
      return invalidValue(field, value, violation.detail);
    case 'Required':
      return requiredValue(field, violation.detail);
    case 'Forbidden':
      return forbiddenValue(field, violation.detail);
    case 'Duplicate':
      return duplicateValue(field, value);
    case 'NotSupported':
      return unsupportedValue(field, value, violation.supported);
    case 'TooMany':
      return tooManyItems(field, countOf(value), violation.max);
    default:
      return violation satisfies never;
  }
}

function countOf(value: Violation['value']): number {
  return Array.isArray(value) ? value.length : Object.keys(value ?? {}).length;
}

/** `subsets[0].ports[1].name` */
function fieldName(path: FieldPath): string {
  return path.reduce<string>(
    (name, step) => (typeof step === 'number' ? `${name}[${step}]` : name === '' ? step : `${name}.${step}`),
    '',
  );
}
