/** Validation errors of single fields, in the words of a kube-apiserver. */

export interface FieldError {
  readonly reason:
    | 'FieldValueInvalid'
    | 'FieldValueRequired'
    | 'FieldValueNotSupported'
    | 'FieldValueForbidden'
    | 'FieldValueDuplicate'
    | 'FieldValueTooLong'
    | 'FieldValueTooMany';
  /** `subsets[0].ports[1].name` */
  readonly field: string;
  readonly message: string;
}

export function invalidValue(field: string, value: unknown, detail: string): FieldError {
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${shown(value)}: ${detail}` };
}

export function requiredValue(field: string, detail = ''): FieldError {
  const message = detail === '' ? 'Required value' : `Required value: ${detail}`;
  return { reason: 'FieldValueRequired', field, message };
}

export function unsupportedValue(field: string, value: unknown, supported: readonly string[]): FieldError {
  const values = supported.map((text) => JSON.stringify(text)).join(', ');
  return {
    reason: 'FieldValueNotSupported',
    field,
    message: `Unsupported value: ${shown(value)}: supported values: ${values}`,
  };
}

export function forbiddenValue(field: string, detail: string): FieldError {
  return { reason: 'FieldValueForbidden', field, message: `Forbidden: ${detail}` };
}

export function duplicateValue(field: string, value: unknown): FieldError {
  return { reason: 'FieldValueDuplicate', field, message: `Duplicate value: ${shown(value)}` };
}

export function tooLong(field: string, bytesMax: number): FieldError {
  return {
    reason: 'FieldValueTooLong',
    field,
    message: `Too long: may not be more than ${bytesMax} bytes`,
  };
}

/** Characters of a value or a path that a message quotes. */
const SHOWN_MAX = 1024;

function shown(value: unknown): string {
  if (typeof value !== 'string') return shortened(JSON.stringify(value) ?? 'null');
  // Go quotes control characters as \x01 where JSON has \u0001.
  return JSON.stringify(shortened(value)).replaceAll(/\\u00([0-9a-f]{2})/g, '\\x$1');
}

/** `text`, cut to the length that a message may quote. */
export function shortened(text: string): string {
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}…`;
}
