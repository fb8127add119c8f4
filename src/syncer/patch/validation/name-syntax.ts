/** Kubernetes' name syntax, as its API servers validate it. Each function returns why the text is invalid, or undefined. */

const LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const QUALIFIED = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

/** RFC 1123 label: at most 63 of a-z, 0-9 and `-`, not at its edges. */
export function dnsLabelProblem(text: string): string | undefined {
  if (text.length > 63) return `must have at most 63 characters, ${show(text)} has ${text.length}`;
  if (LABEL.test(text)) return undefined;
  return `must be a DNS label (a-z, 0-9 and "-", not at its edges), not ${show(text)}`;
}

/** RFC 1123 subdomain: labels joined by dots, at most 253 characters. The length of a part is not limited. */
export function dnsSubdomainProblem(text: string): string | undefined {
  if (text.length > 253) return `must have at most 253 characters, ${show(text)} has ${text.length}`;
  if (text.split('.').every((part) => LABEL.test(part))) return undefined;
  return `must be a DNS name (a-z, 0-9, "-" and "."), not ${show(text)}`;
}

/** `name` or `prefix/name`: label keys, finalizers, application protocols. */
export function qualifiedNameProblem(text: string): string | undefined {
  const parts = text.split('/');
  const name = parts.at(-1) ?? '';
  if (parts.length > 2) return `must be NAME or PREFIX/NAME, not ${show(text)}`;
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    if (prefix === '' || dnsSubdomainProblem(prefix) !== undefined) {
      return `must have a DNS name before the "/", not ${show(text)}`;
    }
  }
  if (name.length > 63)
    return `must have at most 63 characters in its name, ${show(text)} has ${name.length}`;
  if (QUALIFIED.test(name)) return undefined;
  return `must be made of letters, digits, "-", "_" and ".", with a letter or digit at both edges, not ${show(text)}`;
}

/** Same syntax as a label key, but case-insensitive. */
export function annotationKeyProblem(key: string): string | undefined {
  return qualifiedNameProblem(key.toLowerCase());
}

export function labelValueProblem(value: string): string | undefined {
  if (value === '') return undefined;
  if (value.length > 63) return `must have at most 63 characters, ${show(value)} has ${value.length}`;
  if (QUALIFIED.test(value)) return undefined;
  return `must be made of letters, digits, "-", "_" and ".", with a letter or digit at both edges, not ${show(value)}`;
}

function show(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
