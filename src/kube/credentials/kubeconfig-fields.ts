/** The fields of a kubeconfig and their types, as client-go 0.36 has them (`k8s.io/client-go/tools/clientcmd/api/v1`). */

import { isJsonObject, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';

/** `bytes`: base64 text. `any`: what other programs read. */
type FieldType = 'text' | 'bool' | 'bytes' | 'any' | ListType | MapType | StructType;

interface ListType {
  readonly items: FieldType;
}

/** Any keys. */
interface MapType {
  readonly values: FieldType;
}

/** Members with other names are ignored. */
interface StructType {
  readonly fields: Readonly<Record<string, FieldType>>;
}

const texts = (names: string): Record<string, FieldType> =>
  Object.fromEntries(names.split(' ').map((name) => [name, 'text']));
const struct = (fields: StructType['fields']): StructType => ({ fields });
const list = (fields: StructType['fields']): ListType => ({ items: struct(fields) });

const EXTENSIONS = list({ name: 'text', extension: 'any' });

const CLUSTER = struct({
  ...texts('server tls-server-name certificate-authority proxy-url'),
  'insecure-skip-tls-verify': 'bool',
  'certificate-authority-data': 'bytes',
  'disable-compression': 'bool',
  extensions: EXTENSIONS,
});

const EXEC = struct({
  ...texts('command apiVersion installHint interactiveMode'),
  args: { items: 'text' },
  env: list(texts('name value')),
  provideClusterInfo: 'bool',
});

const USER = struct({
  ...texts('client-certificate client-key token tokenFile as as-uid username password'),
  'client-certificate-data': 'bytes',
  'client-key-data': 'bytes',
  'as-groups': { items: 'text' },
  'as-user-extra': { values: { items: 'text' } },
  'auth-provider': struct({ name: 'text', config: { values: 'text' } }),
  exec: EXEC,
  extensions: EXTENSIONS,
});

const CONTEXT = struct({ ...texts('cluster user namespace'), extensions: EXTENSIONS });

export const KUBECONFIG = struct({
  ...texts('kind apiVersion current-context'),
  preferences: struct({ colors: 'bool', extensions: EXTENSIONS }),
  clusters: list({ name: 'text', cluster: CLUSTER }),
  users: list({ name: 'text', user: USER }),
  contexts: list({ name: 'text', context: CONTEXT }),
  extensions: EXTENSIONS,
});

type Path = readonly (string | number)[];
/** Throws. `problem` shows nothing of the value, which may be a credential. */
type Fail = (path: Path, problem: string) => never;

/**
 * The known fields of a value. As for Go, null is no value: a member with it is not there, and an entry of a list or a map is empty. One value of
 * another type makes the whole file invalid, whether or not it is used.
 */
export function typedFields(value: JsonValue, type: FieldType, path: Path, fail: Fail): JsonValue {
  switch (type) {
    case 'any':
      return value;
    case 'text':
      return typeof value === 'string' ? value : fail(path, `must be text, but is ${nameOf(value)}`);
    case 'bool':
      return typeof value === 'boolean'
        ? value
        : fail(path, `must be true or false, but is ${nameOf(value)}`);
    case 'bytes':
      return typeof value === 'string' && isBase64(value)
        ? value
        : fail(path, typeof value === 'string' ? NOT_BASE64 : `must be base64 text, but is ${nameOf(value)}`);
  }
  if ('items' in type)
    return Array.isArray(value)
      ? value.map((item, index) =>
          typedFields(item ?? emptyOf(type.items), type.items, [...path, index], fail),
        )
      : fail(path, `must be a list, but is ${nameOf(value)}`);
  if (!isJsonObject(value)) return fail(path, `must be a mapping, but is ${nameOf(value)}`);
  const typed: JsonObject = {};
  for (const [name, member] of Object.entries(value)) {
    const memberType = 'values' in type ? type.values : Object.hasOwn(type.fields, name) && type.fields[name];
    const present = member ?? ('values' in type ? emptyOf(type.values) : null);
    if (memberType && present !== null)
      setOwn(typed, name, typedFields(present, memberType, [...path, name], fail));
  }
  return typed;
}

const NOT_BASE64 =
  'is not base64: encode the PEM text with "base64 -w0", or name a file in the field without "-data"';

function emptyOf(type: FieldType): JsonValue {
  if (type === 'any') return null;
  if (type === 'bool') return false;
  if (typeof type === 'string') return '';
  return 'items' in type ? [] : {};
}

function nameOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'string':
      return 'text: remove its quotes';
    case 'object':
      return 'a mapping';
    case 'boolean':
      return 'true or false: put it in quotes';
    default:
      return 'a number: put it in quotes';
  }
}

/** Go's decoder skips line breaks, and takes no missing padding and no letters of base64url. */
export function isBase64(text: string): boolean {
  const letters = text.replaceAll(/[\r\n]/gu, '');
  return letters.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/u.test(letters);
}
