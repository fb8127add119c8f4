/** What a LabelSelector and a map of labels may be: the rules of kube-apiserver (`ValidateLabelSelector`, `ValidateLabels`), in its words. */

import { Field, list, map, oneOf, struct, textOf, type FieldRule, type Violation } from './field-rules.ts';
import { labelKeyProblem, labelValueProblem } from './names.ts';
import type { JsonObject, JsonValue } from '../base/json.ts';

const WITH_VALUES = ['In', 'NotIn'];
const WITHOUT_VALUES = ['Exists', 'DoesNotExist'];

const labels = map(labelKeyProblem, labelValueProblem);

const requirement = struct(
  ['key', textOf('required', labelKeyProblem)],
  ['operator', oneOf([...WITH_VALUES, ...WITHOUT_VALUES], 'required')],
  ['values', values],
);

function values(field: Field): void {
  list(textOf('required', labelValueProblem))(field);
  const operator = field.sibling('operator')?.text ?? '';
  if (WITH_VALUES.includes(operator) && field.isEmpty)
    field.required("must be specified when `operator` is 'In' or 'NotIn'");
  if (WITHOUT_VALUES.includes(operator) && !field.isEmpty)
    field.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
}

const LABEL_SELECTOR: readonly FieldRule[] = [
  ['matchLabels', labels],
  ['matchExpressions', list(requirement)],
];

/** A plain map may have a label named `matchLabels`, but its value is a string then. */
export function isLabelSelector(selector: JsonObject): boolean {
  const isMember = (value: JsonValue | undefined): boolean =>
    value !== undefined && typeof value !== 'string';
  return LABEL_SELECTOR.some(([key]) => Object.hasOwn(selector, key) && isMember(selector[key]));
}

/** Of a LabelSelector, of which other members are not checked, or of a plain map of labels. The paths are those in the selector. */
export function selectorViolations(selector: JsonObject): readonly Violation[] {
  if (isLabelSelector(selector)) return Field.violations(LABEL_SELECTOR, selector, undefined);
  const found = Field.violations([['', labels]], { '': selector }, undefined);
  return found.map((one) => ({ ...one, path: one.path.slice(1) }));
}
