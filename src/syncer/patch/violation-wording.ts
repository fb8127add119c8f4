/** What a violation of a kube-apiserver's rule is called for the author of the value: without the examples of a server, and with what is there. */

import { isJsonObject, type JsonValue } from '../../base/json.ts';
import type { Violation } from '../../kube/field-rules.ts';

export function wordingOf(violation: Violation): string {
  const { value } = violation;
  switch (violation.reason) {
    case 'Type':
    case 'Invalid':
      return `${withoutExamples(violation.detail)}, not ${describe(value)}`;
    case 'Required':
      return violation.detail || `is required ${violation.when}`.trim();
    case 'Forbidden':
      return violation.detail;
    case 'Duplicate':
      return 'must be different from that of every other item';
    case 'NotSupported':
      return `must be one of ${violation.supported.join(', ')}, not ${describe(value)}`;
    case 'TooMany':
      return `must have at most ${violation.max} items`;
    default:
      return violation satisfies never;
  }
}

/** The examples and the pattern at the end only repeat the sentence. */
function withoutExamples(detail: string): string {
  const [sentence = detail] = detail.split(' (e.g. ');
  return sentence.replace(/,$/u, '');
}

function describe(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (isJsonObject(value)) return 'an object';
  const shown = JSON.stringify(value);
  return shown.length > 60 ? `${shown.slice(0, 60)}…` : shown;
}
