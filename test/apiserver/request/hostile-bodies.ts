/** Request bodies whose processing costs far more than sending them. */

import { Lexer } from 'yaml';
import { bytesField, envelope } from '../../support/protobuf.ts';
import {
  BODY_BYTES_MAX,
  JSON_TOKENS_MAX,
  YAML_BYTES_MAX,
  YAML_TOKENS_MAX,
} from '../../../src/apiserver/limits.ts';

export type MediaType = 'json' | 'yaml' | 'json-patch' | 'strategic-patch' | 'protobuf';

export interface HostileBody {
  readonly name: string;
  readonly media: MediaType;
  /** Built when it is sent: all bodies together take hundreds of megabytes. */
  readonly bytes: () => Buffer;
}

/** Leaves space for the rest of the object. */
const BYTES = BODY_BYTES_MAX - 4096;

/** `part(0)`, `part(1)`, … joined by `separator`, as many as fit into `bytes`. */
function repeated(bytes: number, separator: string, part: (index: number) => string): string {
  const parts: string[] = [];
  let length = 0;
  for (let index = 0; ; index++) {
    const text = part(index);
    length += text.length + separator.length;
    if (length > bytes) return parts.join(separator);
    parts.push(text);
  }
}

const key = (index: number): string => index.toString(36);

/** Parts of `metadata`, as JSON text. */
const METADATA: Readonly<Record<string, (bytes: number) => string>> = {
  'annotations with valid keys': (bytes) =>
    `"annotations":{${repeated(bytes, ',', (n) => `"${key(n)}":""`)}}`,
  'annotations with invalid keys': (bytes) =>
    `"annotations":{${repeated(bytes, ',', (n) => `"-${key(n)}":""`)}}`,
  'labels with valid keys': (bytes) => `"labels":{${repeated(bytes, ',', (n) => `"${key(n)}":""`)}}`,
  'labels with invalid keys and values': (bytes) =>
    `"labels":{${repeated(bytes, ',', (n) => `"-${key(n)}":"-"`)}}`,
  'labels with long prefixes': (bytes) =>
    `"labels":{${repeated(bytes, ',', (n) => `"${'a-'.repeat(120)}${key(n)}/b":"${'a.'.repeat(30)}"`)}}`,
  'valid finalizers': (bytes) => `"finalizers":[${repeated(bytes, ',', (n) => `"a/${key(n)}"`)}]`,
  'finalizers without a prefix': (bytes) => `"finalizers":[${repeated(bytes, ',', (n) => `"${key(n)}"`)}]`,
  'invalid finalizers': (bytes) => `"finalizers":[${repeated(bytes, ',', () => '"-"')}]`,
  'owner references with distinct uids': (bytes) =>
    `"ownerReferences":[${repeated(bytes, ',', (n) => `{"uid":"${key(n)}","apiVersion":"v1","kind":"a","name":"b"}`)}]`,
  'owner references without fields': (bytes) => `"ownerReferences":[${repeated(bytes, ',', () => '{}')}]`,
  'owner references that are all the controller': (bytes) =>
    `"ownerReferences":[${repeated(bytes, ',', (n) => `{"uid":"${key(n)}","controller":true}`)}]`,
  'field managers': (bytes) =>
    `"managedFields":[${repeated(bytes, ',', (n) => fieldManager(key(n), `"f:metadata":{"f:labels":{"f:${key(n)}":{}}}`))}]`,
  'field managers that apply': (bytes) =>
    `"managedFields":[${repeated(bytes, ',', (n) => fieldManager(key(n), `"f:metadata":{"f:labels":{"f:${key(n)}":{}}}`, 'Apply'))}]`,
  'one field manager of very many fields': (bytes) =>
    `"managedFields":[${fieldManager('a', `"f:metadata":{"f:labels":{${repeated(bytes - 200, ',', (n) => `"f:${key(n)}":{}`)}}}`)}]`,
  'one field manager of very many list items': (bytes) =>
    `"managedFields":[${fieldManager('a', `"f:subsets":{${repeated(bytes - 200, ',', (n) => `"k:{\\"a\\":${n}}":{}`)}}`)}]`,
};

function fieldManager(name: string, fields: string, operation = 'Update'): string {
  return `{"manager":"${name}","operation":"${operation}","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{${fields}}}`;
}

/** Enough to extrapolate the number of tokens. */
const SAMPLE_BYTES = 8192;

/** The longest text that the limit of tokens accepts. */
function mostAccepted(text: (bytes: number) => string): string {
  const tokens = ((text(SAMPLE_BYTES).match(/[[{,:]/g)?.length ?? 0) * BYTES) / SAMPLE_BYTES;
  // An even number: some texts halve it.
  return text(tokens < JSON_TOKENS_MAX ? BYTES : 2 * Math.floor((BYTES * 0.45 * JSON_TOKENS_MAX) / tokens));
}

/** Members of the object itself, as JSON text. */
const MEMBERS: Readonly<Record<string, (bytes: number) => string>> = {
  'distinct unknown keys': (bytes) => repeated(bytes, ',', (n) => `"${key(n)}":0`),
  'one key again and again': (bytes) => repeated(bytes, ',', () => '"a":0'),
  'empty lists in a list': (bytes) => `"a":[${repeated(bytes, ',', () => '[]')}]`,
  'empty objects in a list': (bytes) => `"a":[${repeated(bytes, ',', () => '{}')}]`,
  'nested lists': (bytes) => `"a":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}`,
  'a list of numbers': (bytes) => `"a":[${repeated(bytes, ',', () => '1')}]`,
  'one number of very many digits': (bytes) => `"a":${'9'.repeat(bytes)}`,
  'one string of escapes': (bytes) => `"a":"${'\\u0041'.repeat(Math.floor(bytes / 6))}"`,
  'one string of escaped quotes': (bytes) => `"a":"${'\\"'.repeat(bytes / 2 - 4)}"`,
  'one string of backslashes': (bytes) => `"a":"${'\\\\'.repeat(bytes / 2 - 4)}"`,
  'a long key above distinct keys': (bytes) =>
    `"${'k'.repeat(bytes / 2)}":{${repeated(bytes / 2, ',', (n) => `"${key(n)}":0,"${key(n)}":0`)}}`,
  'very many data entries': (bytes) => `"data":{${repeated(bytes, ',', (n) => `"${key(n)}":""`)}}`,
  'very many invalid data entries': (bytes) => `"data":{${repeated(bytes, ',', (n) => `"..${key(n)}":""`)}}`,
  'base64 that ends wrong': (bytes) => `"binaryData":{"a":"${'A'.repeat(bytes - 8)}-"}`,
  'base64 in very many lines': (bytes) => `"binaryData":{"a":"${'A\\n'.repeat(bytes / 3 - 8)}"}`,
  'a body that is cut short': (bytes) => `"a":[${repeated(bytes, ',', () => '1')}`,
  'a body that is wrong at its end': (bytes) => `"a":[${repeated(bytes, ',', () => '1')},,]`,
};

/** Members of Endpoints, as JSON text. */
const ENDPOINTS: Readonly<Record<string, (bytes: number) => string>> = {
  'empty subsets': (bytes) => `"subsets":[${repeated(bytes, ',', () => '{}')}]`,
  'empty addresses': (bytes) => `"subsets":[{"addresses":[${repeated(bytes, ',', () => '{}')}]}]`,
  'distinct addresses': (bytes) =>
    `"subsets":[{"addresses":[${repeated(bytes, ',', (n) => `{"ip":"10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}"}`)}],"ports":[{"port":80}]}]`,
  'ports of one name': (bytes) =>
    `"subsets":[{"ports":[${repeated(bytes, ',', () => '{"port":1,"name":"a"}')}]}]`,
};

/** Members of an OwnedAccessKey, as JSON text. */
const KEYS: Readonly<Record<string, (bytes: number) => string>> = {
  'very many groups': (bytes) => `"spec":{"groups":[${repeated(bytes, ',', (n) => `"${key(n)}"`)}]}`,
  'very many scope rules': (bytes) => `"spec":{"scope":{"rules":[${repeated(bytes, ',', () => '{}')}]}}`,
  'very many wildcard resources': (bytes) =>
    `"spec":{"scope":{"rules":[{"resources":[{"resources":[${repeated(bytes, ',', (n) => `"${key(n)}/*","*/${key(n)}"`)}]}]}]}}`,
  'very many scoped projects': (bytes) =>
    `"spec":{"scope":{"projects":[${repeated(bytes, ',', (n) => `{"project":"${key(n)}"}`)}]}}`,
};

const DOCUMENTS: Readonly<Record<string, string>> = {
  configmaps: '"apiVersion":"v1","kind":"ConfigMap"',
  endpoints: '"apiVersion":"v1","kind":"Endpoints"',
  ownedaccesskeys: '"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey"',
};

export type Resource = 'configmaps' | 'endpoints' | 'ownedaccesskeys';

export interface HostileObject extends HostileBody {
  /** The expensive part is in `metadata`. */
  readonly isMetadata: boolean;
}

/** JSON objects of a kind with expensive members, as a create, an update, an apply and a merge patch accept them. */
export function hostileObjects(resource: Resource, name: string, isAccepted: boolean): HostileObject[] {
  const own = resource === 'endpoints' ? ENDPOINTS : resource === 'ownedaccesskeys' ? KEYS : MEMBERS;
  const spec =
    resource === 'ownedaccesskeys' ? ',"spec":{"displayName":"a","ttl":0,"type":"User","user":"a"}' : '';
  const sized = (text: (bytes: number) => string): string => (isAccepted ? mostAccepted(text) : text(BYTES));
  const metadata = Object.entries(resource === 'configmaps' ? METADATA : {}).map(([what, text]) => ({
    what,
    isMetadata: true,
    members: () => `"metadata":{"name":"${name}",${sized(text)}}${spec}`,
  }));
  const other = Object.entries(own).map(([what, text]) => ({
    what,
    isMetadata: false,
    members: () => `"metadata":{"name":"${name}"},${sized(text)}`,
  }));
  return [...metadata, ...other].map(({ what, isMetadata, members }) => ({
    name: what,
    isMetadata,
    media: 'json' as const,
    bytes: () => Buffer.from(`{${DOCUMENTS[resource] ?? ''},${members()}}`),
  }));
}

/** Operations against an object with a list and a map of many members. */
const OPERATIONS: Readonly<Record<string, (count: number) => string>> = {
  'tests of the whole object': () => '{"op":"test","path":"","value":{}}',
  'tests of a large map': () => '{"op":"test","path":"/data","value":{}}',
  'additions at the head of a list': () => '{"op":"add","path":"/metadata/finalizers/0","value":"a/b"}',
  'additions at the end of a list': (n) =>
    `{"op":"add","path":"/metadata/finalizers/-","value":"a/${key(n)}"}`,
  'removals at the head of a list': () => '{"op":"remove","path":"/metadata/finalizers/0"}',
  'moves inside a list': () =>
    '{"op":"move","from":"/metadata/finalizers/0","path":"/metadata/finalizers/-"}',
  'copies of a large map': (n) => `{"op":"copy","from":"/data","path":"/x${n}"}`,
  'replacements of the whole object': () => '{"op":"replace","path":"","value":{"metadata":{"name":"a"}}}',
  'distinct annotations': (n) => `{"op":"add","path":"/metadata/annotations/${key(n)}","value":""}`,
  'operations with unknown members': (n) => `{"op":"test","path":"","${key(n)}":0}`,
};

export function hostileJsonPatches(): HostileBody[] {
  const patches = Object.entries(OPERATIONS).flatMap(([what, operation]) => [
    {
      name: `9999 ${what}`,
      text: () => `[${Array.from({ length: 9999 }, (_, n) => operation(n)).join(',')}]`,
    },
    { name: `3 MiB of ${what}`, text: () => `[${repeated(BYTES, ',', operation)}]` },
  ]);
  const path = (): string => '/a'.repeat(BYTES / 2 - 64);
  const long = { name: 'one very long path', text: () => `[{"op":"test","path":"${path()}","value":0}]` };
  const lists = (): string => Array.from({ length: 30_000 }, () => '[]').join(',');
  const wide = { name: 'a large value', text: () => `[{"op":"test","path":"/data","value":[${lists()}]}]` };
  return [...patches, long, wide].map(({ name, text }) => ({
    name,
    media: 'json-patch',
    bytes: () => Buffer.from(text()),
  }));
}

export function hostileStrategicPatches(): HostileBody[] {
  const text: Readonly<Record<string, () => string>> = {
    'list items with distinct merge keys': () =>
      `{"metadata":{"ownerReferences":[${repeated(BYTES, ',', (n) => `{"uid":"${key(n)}"}`)}]}}`,
    'an order of very many items': () =>
      `{"metadata":{"$setElementOrder/finalizers":[${repeated(BYTES, ',', (n) => `"a/${key(n)}"`)}]}}`,
    'list items in the opposite order': () =>
      `{"metadata":{"finalizers":[${repeated(BYTES / 2, ',', (n) => `"a/${key(n)}"`)}],"$setElementOrder/finalizers":[${repeated(BYTES / 2, ',', (n) => `"a/${key(90_000 - n)}"`)}]}}`,
    'removals of very many items': () =>
      `{"metadata":{"$deleteFromPrimitiveList/finalizers":[${repeated(BYTES, ',', (n) => `"${key(n)}"`)}]}}`,
    'very many keys to retain': () =>
      `{"data":{"$retainKeys":[${repeated(BYTES, ',', (n) => `"${key(n)}"`)}]}}`,
    'very many removals of members': () => `{"data":{${repeated(BYTES, ',', (n) => `"${key(n)}":null`)}}}`,
  };
  return Object.entries(text).map(([name, body]) => ({
    name,
    media: 'strategic-patch',
    bytes: () => Buffer.from(body()),
  }));
}

const YAML_HEAD = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n';

const YAML: Readonly<Record<string, (bytes: number) => string>> = {
  tags: (bytes) => '!a '.repeat(bytes / 3),
  'tags with values': (bytes) => repeated(bytes, '\n', () => '- !a b'),
  'tag directives': (bytes) =>
    `${repeated(bytes / 2, '\n', (n) => `%TAG !${key(n)}! a`)}\n---\n${repeated(bytes / 2, '\n', () => '- !0!a b')}`,
  'anchors on one node': (bytes) => '&a '.repeat(bytes / 3),
  anchors: (bytes) => repeated(bytes, '\n', (n) => `- &${key(n)} a`),
  aliases: (bytes) => `- &a b\n${repeated(bytes, '\n', () => '- *a')}`,
  'aliases of distinct anchors': (bytes) => repeated(bytes, '\n', (n) => `- &${key(n)} a\n- *${key(n)}`),
  'aliases of lists of aliases': () =>
    Array.from({ length: 20 }, (_, n) => `a${n}: &a${n} [${`*a${n - 1},`.repeat(n === 0 ? 0 : 9)}]`).join(
      '\n',
    ),
  'unresolved aliases': (bytes) => repeated(bytes, '\n', (n) => `- *${key(n)}`),
  'opening brackets': (bytes) => '['.repeat(bytes),
  'closing brackets': (bytes) => ']'.repeat(bytes),
  'closing brackets in lines': (bytes) => ']\n'.repeat(bytes / 2),
  'closing braces after a map': (bytes) => `a: {}${'}'.repeat(bytes)}`,
  'brackets in turn': (bytes) => '[]'.repeat(bytes / 2),
  'braces in turn': (bytes) => '{} '.repeat(bytes / 3),
  'flow lists in a flow list': (bytes) => `[${'[],'.repeat(bytes / 3)}]`,
  'flow maps in a flow list': (bytes) => `[${'{},'.repeat(bytes / 3)}]`,
  'flow keys': (bytes) => `{${repeated(bytes, ',', (n) => key(n))}}`,
  commas: (bytes) => ','.repeat(bytes),
  'commas in a flow list': (bytes) => `[${','.repeat(bytes - 2)}]`,
  'colons in a flow map': (bytes) => `{${': ,'.repeat(bytes / 3)}}`,
  'double-quoted strings in a row': (bytes) => '"" '.repeat(bytes / 3),
  'single-quoted strings in a row': (bytes) => "'' ".repeat(bytes / 3),
  'a string of escapes': (bytes) => `"${'\\x'.repeat(bytes / 2 - 4)}"`,
  'a string of lines': (bytes) => `"${'\n'.repeat(bytes - 4)}"`,
  'an open string': (bytes) => `"${'a\n'.repeat(bytes / 2)}`,
  'a plain list': (bytes) => '- a\n'.repeat(bytes / 4),
  'an empty list': (bytes) => '-\n'.repeat(bytes / 2),
  'nested lists in a line': (bytes) => '- '.repeat(bytes / 2),
  'explicit keys': (bytes) => '? '.repeat(bytes / 2),
  'explicit keys in lines': (bytes) => '? a\n'.repeat(bytes / 4),
  'values without keys': (bytes) => ': '.repeat(bytes / 2),
  'values without keys in lines': (bytes) => ':\n'.repeat(bytes / 2),
  'distinct keys': (bytes) => repeated(bytes, '\n', (n) => `${key(n)}:`),
  'one key again and again': (bytes) => 'a:\n'.repeat(bytes / 3),
  'merge keys': (bytes) => `a: &a {b: c}\nd:\n${repeated(bytes, '\n', () => '  <<: *a')}`,
  'merged lists': (bytes) => `a: &a {b: c}\nd:\n  <<: [${'*a,'.repeat(bytes / 4)}]`,
  documents: (bytes) => '---\n'.repeat(bytes / 4),
  'documents with ends': (bytes) => '---\n...\n'.repeat(bytes / 8),
  directives: (bytes) => '%A b\n'.repeat(bytes / 5),
  comments: (bytes) => '#\n'.repeat(bytes / 2),
  'comments after items': (bytes) => '- a #\n'.repeat(bytes / 6),
  'block scalars': (bytes) => '- |\n a\n'.repeat(bytes / 7),
  'a long block scalar': (bytes) => `|\n${' a\n'.repeat(bytes / 3)}`,
  'a folded scalar': (bytes) => `>\n${' a\n\n'.repeat(bytes / 4)}`,
  'a plain scalar of lines': (bytes) => 'a\n'.repeat(bytes / 2),
  'a plain scalar of blank lines': (bytes) => `a${'\n'.repeat(bytes - 2)}b`,
  'indented more and more': (bytes) =>
    Array.from({ length: 1000 }, (_, n) => `${' '.repeat(n)}a:`)
      .join('\n')
      .slice(0, bytes),
  tabs: (bytes) => '\t'.repeat(bytes),
  'carriage returns': (bytes) => '\r'.repeat(bytes),
  spaces: (bytes) => ' '.repeat(bytes),
  'at signs': (bytes) => '@ '.repeat(bytes / 2),
  'percent signs': (bytes) => '%\n'.repeat(bytes / 2),
  'numbers with underscores': (bytes) => repeated(bytes, '\n', () => '- 1_1'),
  'sexagesimal numbers': (bytes) => `- ${'1:'.repeat(bytes / 2 - 4)}1`,
  'one long number': (bytes) => `- ${'1'.repeat(bytes - 4)}`,
  'one long key': (bytes) => `${'a'.repeat(bytes - 4)}: b`,
  'JSON with a comma at the end': (bytes) => `{${repeated(bytes, ',', (n) => `"${key(n)}":0`)},}`,
};

/** The length up to which a text has no more tokens than the server accepts. */
function acceptedBytes(text: (bytes: number) => string): number {
  let bytes = YAML_BYTES_MAX;
  while (Iterator.from(new Lexer().lex(text(bytes))).reduce((count) => count + 1, 0) > YAML_TOKENS_MAX)
    bytes = Math.floor(bytes * 0.97);
  return bytes;
}

/** Text that is, or is nearly, YAML: at the root, and as a member of an object. By default the longest that the server parses. */
export function hostileYaml(max?: number): HostileBody[] {
  const of = (text: (bytes: number) => string): string => text(max ?? acceptedBytes(text));
  const roots = Object.entries(YAML).map(([name, text]) => ({ name, text: () => of(text) }));
  const members = ['tags', 'anchors', 'aliases', 'a plain list', 'distinct keys', 'flow keys'].map(
    (name) => ({
      name: `${name} below a member`,
      text: () =>
        of((bytes) => `${YAML_HEAD}data:\n${(YAML[name]?.(bytes / 2) ?? '').replaceAll(/^/gm, ' ')}`),
    }),
  );
  return [...roots, ...members].map(({ name, text }) => ({
    name,
    media: 'yaml',
    bytes: () => Buffer.from(text()).subarray(0, max ?? YAML_BYTES_MAX),
  }));
}

/** As many copies of `part` as fit into `bytes`. */
function many(bytes: number, part: Buffer): Buffer {
  return Buffer.alloc(bytes - (bytes % part.length), part);
}

export function hostileProtobuf(): HostileBody[] {
  const empty = Buffer.from([0x0a, 0x00]);
  const owners = (): Buffer => bytesField(1, bytesField(13, many(15_000, empty)));
  const raw: Readonly<Record<string, () => Buffer>> = {
    'empty metadata': () => many(BYTES, empty),
    'unknown numbers': () => many(BYTES, Buffer.from([0x78, 0x01])),
    'metadata of very many empty fields': () => bytesField(1, many(BYTES, empty)),
    'owner references of very many empty fields': () => many(BYTES, owners()),
    'very many data entries': () =>
      many(BYTES, bytesField(2, Buffer.concat([bytesField(1, 'a'), bytesField(2, '')]))),
    'very many distinct data entries': () =>
      Buffer.concat(
        Array.from({ length: 150_000 }, (_, n) =>
          bytesField(2, Buffer.concat([bytesField(1, key(n)), bytesField(2, '')])),
        ),
      ),
    'long numbers': () => many(BYTES, Buffer.from([0x78, ...Array.from({ length: 9 }, () => 0xff), 0x01])),
  };
  return Object.entries(raw).map(([name, body]) => ({
    name,
    media: 'protobuf',
    bytes: () => envelope('v1', 'ConfigMap', body()),
  }));
}

/** Reviews of the key API, which are processed and not stored. `resource`: group, version and plural. */
export function hostileReviews(): (Omit<HostileBody, 'media'> & { readonly resource: string })[] {
  const texts: readonly [name: string, resource: string, members: (bytes: number) => string][] = [
    ['a token of 3 MiB', TOKEN_REVIEWS, (bytes) => `"token":"pak_${'a'.repeat(bytes - 64)}"`],
    ['a JWT of very many dots', TOKEN_REVIEWS, (bytes) => `"token":"eyJ${'a.'.repeat(bytes / 2 - 64)}"`],
    [
      'very many audiences',
      TOKEN_REVIEWS,
      (bytes) => `"token":"a","audiences":[${repeated(bytes, ',', (n) => `"${key(n)}"`)}]`,
    ],
    [
      'very many groups',
      ACCESS_REVIEWS,
      (bytes) => `${RESOURCE},"user":"a","groups":[${repeated(bytes, ',', (n) => `"${key(n)}"`)}]`,
    ],
    [
      'very many extra values',
      ACCESS_REVIEWS,
      (bytes) => `${RESOURCE},"user":"a","extra":{${repeated(bytes, ',', (n) => `"${key(n)}":["a"]`)}}`,
    ],
    [
      'a path of 3 MiB',
      ACCESS_REVIEWS,
      (bytes) => `"nonResourceAttributes":{"path":"${'/a'.repeat(bytes / 2 - 64)}","verb":"get"},"user":"a"`,
    ],
  ];
  return texts.map(([name, resource, members]) => ({
    name,
    resource,
    bytes: () => Buffer.from(`{"spec":{${mostAccepted(members)}}}`),
  }));
}

const TOKEN_REVIEWS = 'authentication.k8s.io/v1/tokenreviews';
const ACCESS_REVIEWS = 'authorization.k8s.io/v1/subjectaccessreviews';
const RESOURCE = '"resourceAttributes":{"verb":"get","resource":"pods"}';

/** Selectors of the length that a URL may have. */
export const HOSTILE_SELECTORS: Readonly<Record<string, string>> = {
  commas: `labelSelector=${','.repeat(7000)}`,
  'a set of very many values': `labelSelector=a in (${repeated(7000, ',', key)})`,
  'a set of empty values': `labelSelector=a in (${','.repeat(7000)})`,
  'very many requirements': `labelSelector=${repeated(7000, ',', (n) => `!${key(n)}`)}`,
  spaces: `labelSelector=a${' '.repeat(7000)}b`,
  'a long key': `labelSelector=${'a.'.repeat(3500)}/b`,
  brackets: `labelSelector=a in ${'('.repeat(7000)}`,
  'a long number': `labelSelector=a>${'1'.repeat(7000)}`,
  'very many field terms': `fieldSelector=${repeated(7000, ',', () => 'metadata.name=a')}`,
  'field terms of backslashes': `fieldSelector=metadata.name=${'\\\\'.repeat(3500)}`,
  'field commas': `fieldSelector=${','.repeat(7000)}`,
  'field escapes': `fieldSelector=metadata.name=${'\\,'.repeat(3500)}`,
  'exclamation marks': `fieldSelector=${'!'.repeat(7000)}`,
};
