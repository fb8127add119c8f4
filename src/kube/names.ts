/** Syntax of names, labels and annotations in Kubernetes. Each `…Problem` returns what a kube-apiserver says, or undefined. */

/** Maximum length of a DNS label, of a label's value and of the name in a label's key. */
export const LABEL_LENGTH_MAX = 63;
/** Maximum length of a DNS subdomain, which is what most names are. */
export const NAME_LENGTH_MAX = 253;

/** A DNS label with its limit, as the source of a pattern. */
export const DNS_LABEL_PATTERN = '[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?';
export const DNS_LABEL_OR_EMPTY = new RegExp(`^(${DNS_LABEL_PATTERN})?$`, 'u');
/** What a message says of it. */
export const DNS_LABEL_RULE =
  'a DNS label (lower-case letters, digits and "-", at most 63 characters, a letter or digit at both ends)';

const DNS_LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const DNS_SUBDOMAIN = `${DNS_LABEL}(\\.${DNS_LABEL})*`;
const QUALIFIED_NAME = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE = '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?';

const DNS_LABEL_FORM = new RegExp(`^${DNS_LABEL}$`);
const DNS_SUBDOMAIN_FORM = new RegExp(`^${DNS_SUBDOMAIN}$`);
const QUALIFIED_NAME_FORM = new RegExp(`^${QUALIFIED_NAME}$`);
const LABEL_VALUE_FORM = new RegExp(`^${LABEL_VALUE}$`);

export type NameCheck = (name: string) => string | undefined;

/** RFC 1123: a-z, 0-9 and `-`, not at its edges. */
export function isDnsLabel(name: string): boolean {
  return name.length <= LABEL_LENGTH_MAX && DNS_LABEL_FORM.test(name);
}

/** RFC 1123: labels joined by dots. The length of a part is not limited. */
export function isDnsSubdomain(name: string): boolean {
  return name.length <= NAME_LENGTH_MAX && DNS_SUBDOMAIN_FORM.test(name);
}

/** The part of a label's key after its prefix. */
function isQualifiedName(name: string): boolean {
  return name.length <= LABEL_LENGTH_MAX && QUALIFIED_NAME_FORM.test(name);
}

function tooManyCharacters(max: number): string {
  return `must be no more than ${max} characters`;
}

export function subdomainProblem(name: string): string | undefined {
  if (name.length > NAME_LENGTH_MAX) return tooManyCharacters(NAME_LENGTH_MAX);
  if (isDnsSubdomain(name)) return undefined;
  return (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an " +
    `alphanumeric character (e.g. 'example.com', regex used for validation is '${DNS_SUBDOMAIN}')`
  );
}

export function labelProblem(name: string): string | undefined {
  if (name.length > LABEL_LENGTH_MAX) return tooManyCharacters(LABEL_LENGTH_MAX);
  if (isDnsLabel(name)) return undefined;
  if (isDnsSubdomain(name)) return 'must not contain dots';
  return (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
    `alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${DNS_LABEL}')`
  );
}

/** Names must be usable as path segments, even for kinds without rules of their own. */
export function pathSegmentProblem(name: string): string | undefined {
  if (name === '.' || name === '..') return `may not be '${name}'`;
  const illegal = ['/', '%'].find((character) => name.includes(character));
  return illegal === undefined ? undefined : `may not contain '${illegal}'`;
}

/** Checks `prefix/name`: the key of a label or an annotation, or a finalizer. */
export function labelKeyProblem(key: string): string | undefined {
  const parts = key.split('/');
  const name = parts.at(-1) ?? '';
  if (parts.length > 2) {
    return (
      `a valid label key ${mustConsist()} with an optional DNS subdomain prefix and '/' ` +
      "(e.g. 'example.com/MyName')"
    );
  }
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    if (prefix === '') return 'prefix part must be non-empty';
    const wrong = subdomainProblem(prefix);
    if (wrong) return `prefix part ${wrong}`;
  }
  if (name === '') return 'name part must be non-empty';
  if (name.length > LABEL_LENGTH_MAX) return `name part ${tooManyCharacters(LABEL_LENGTH_MAX)}`;
  return isQualifiedName(name) ? undefined : `name part ${mustConsist()}`;
}

function mustConsist(): string {
  return (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
    `(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${QUALIFIED_NAME}')`
  );
}

export function labelValueProblem(value: string): string | undefined {
  if (value.length > LABEL_LENGTH_MAX) return tooManyCharacters(LABEL_LENGTH_MAX);
  if (LABEL_VALUE_FORM.test(value)) return undefined;
  return (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
    `'${LABEL_VALUE}')`
  );
}

/** Keys of a ConfigMap's or a Secret's data. */
export function dataKeyProblem(key: string): string | undefined {
  if (key.length > NAME_LENGTH_MAX) return tooManyCharacters(NAME_LENGTH_MAX);
  if (key === '.' || key === '..') return `must not be '${key}'`;
  if (key.startsWith('..')) return "must not start with '..'";
  if (/^[-._a-zA-Z0-9]+$/.test(key)) return undefined;
  return (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', " +
    "regex used for validation is '[-._a-zA-Z0-9]+')"
  );
}

/** Matches keys of labels and annotations, and `PREFIX/*` all keys with that prefix. */
export function keyMatcher(patterns: readonly string[]): (key: string) => boolean {
  const keys = new Set(patterns);
  return (key) => keys.has(key) || (key.includes('/') && keys.has(`${key.slice(0, key.indexOf('/'))}/*`));
}
