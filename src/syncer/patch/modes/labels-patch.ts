/** Labels patches: the value is a label selector, and its keys are translated like label keys. */

import type { Direction } from '../types.ts';
import { UntranslatableValue } from './untranslatable.ts';
import type { JsonValue } from '../../../base/json.ts';
import { SelectorError, selectorToHost, selectorToVirtual } from '../../translate/metadata/selectors.ts';
import type { LabelTranslator } from '../../translate/types.ts';

/** The selector for the other side. Throws {@link UntranslatableValue} if the value is not a selector. */
export function translateLabels(value: JsonValue, direction: Direction, labels: LabelTranslator): JsonValue {
  try {
    return direction === 'toHost' ? selectorToHost(value, labels) : selectorToVirtual(value, labels);
  } catch (error) {
    if (error instanceof SelectorError) throw new UntranslatableValue(error.message, { cause: error });
    throw error;
  }
}
