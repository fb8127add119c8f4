/** Syntax of names, labels and annotations in Kubernetes. Each check returns the problem, or undefined. */

const DNS_LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const DNS_SUBDOMAIN = `${DNS_LABEL}(\\.${DNS_LABEL})*`;
const QUALIFIED_NAME = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE = '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?';

const isDnsLabel = new RegExp(`^${DNS_LABEL}$`);
const isDnsSubdomain = new RegExp(`^${DNS_SUBDOMAIN}$`);
const isQualifiedName = new RegExp(`^${QUALIFIED_NAME}$`);
const isLabelValue = new RegExp(`^${LABEL_VALUE}$`);

export type NameCheck = (name: string) => string | undefined;

function tooManyCharacters(max: number): string {
  return `must be no more than ${max} characters`;
}

export function subdomainProblem(name: string): string | undefined {
  if (name.length > 253) return tooManyCharacters(253);
  if (isDnsSubdomain.test(name)) return undefined;
  return (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an " +
    `alphanumeric character (e.g. 'example.com', regex used for validation is '${DNS_SUBDOMAIN}')`
  );
}

export function labelProblem(name: string): string | undefined {
  if (name.length > 63) return tooManyCharacters(63);
  if (isDnsLabel.test(name)) return undefined;
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
  if (name.length > 63) return `name part ${tooManyCharacters(63)}`;
  return isQualifiedName.test(name) ? undefined : `name part ${mustConsist()}`;
}

function mustConsist(): string {
  return (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
    `(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${QUALIFIED_NAME}')`
  );
}

export function labelValueProblem(value: string): string | undefined {
  if (value.length > 63) return tooManyCharacters(63);
  if (isLabelValue.test(value)) return undefined;
  return (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
    `'${LABEL_VALUE}')`
  );
}

/** Keys of a ConfigMap's or a Secret's data. */
export function dataKeyProblem(key: string): string | undefined {
  if (key.length > 253) return tooManyCharacters(253);
  if (key === '.' || key === '..') return `must not be '${key}'`;
  if (key.startsWith('..')) return "must not start with '..'";
  if (/^[-._a-zA-Z0-9]+$/.test(key)) return undefined;
  return (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', " +
    "regex used for validation is '[-._a-zA-Z0-9]+')"
  );
}
