/** Malformed and hostile request bodies: JSON, YAML, patches and protobuf. */

import { envelope } from '../../support/protobuf.ts';
import type { Seeded } from './seeded.ts';

const TYPE = { apiVersion: 'management.platform.sh/v1', kind: 'OwnedAccessKey' };
const AUTHENTICATION = 'authentication.k8s.io/v1';
const AUTHORIZATION = 'authorization.k8s.io/v1';
/** Of the other resources. */
const OTHER_TYPES = [
  { ...TYPE, kind: 'DirectClusterEndpointToken' },
  { ...TYPE, kind: 'OwnedAccessKeyRotation' },
  { apiVersion: AUTHENTICATION, kind: 'TokenReview' },
  { apiVersion: AUTHENTICATION, kind: 'SelfSubjectReview' },
  { apiVersion: AUTHORIZATION, kind: 'SubjectAccessReview' },
  { apiVersion: AUTHORIZATION, kind: 'SelfSubjectAccessReview' },
  { apiVersion: AUTHORIZATION, kind: 'SelfSubjectRulesReview' },
  { apiVersion: 'v1', kind: 'Event' },
  { apiVersion: 'meta.k8s.io/v1', kind: 'DeleteOptions' },
];
const WORDS = [
  'token',
  'audiences',
  'resourceAttributes',
  'nonResourceAttributes',
  'verb',
  'namespace',
  'extra',
  'overlapSeconds',
  'preconditions',
  'metadata',
  'spec',
  'status',
  'kind',
  'apiVersion',
  'name',
  'generateName',
  'labels',
  'annotations',
  'finalizers',
  'ttl',
  'groups',
  'scope',
  'user',
  'type',
  'key',
  'identity',
  'connectorData',
  'oidcProvider',
  'idToken',
  'ownerReferences',
  'managedFields',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'length',
  '',
  'a.b/c',
  '~1',
  '-',
];

export interface Body {
  readonly contentType: string;
  readonly bytes: Buffer | string;
}

export function garbageBody(random: Seeded): Body {
  return random.oneOf<Body>([
    () => ({ contentType: 'application/json', bytes: jsonText(random) }),
    () => ({ contentType: 'application/json', bytes: nearlyAnObject(random) }),
    () => ({
      contentType: 'application/json',
      bytes: random.oneOf(HOSTILE_JSON.map((make) => () => make(random))),
    }),
    () => ({
      contentType: 'application/yaml',
      bytes: random.oneOf(HOSTILE_YAML.map((make) => () => make(random))),
    }),
    () => ({ contentType: 'application/yaml', bytes: random.text(200, ' \n\t-:?[]{}#&*!|>\'"%@`abc0~<,é') }),
    () => ({ contentType: 'application/vnd.kubernetes.protobuf', bytes: protobuf(random) }),
    () => ({
      contentType: contentType(random),
      bytes: random.is(0.5) ? nearlyAnObject(random) : random.bytes(random.integer(300)),
    }),
  ]);
}

export function garbagePatch(random: Seeded): Body {
  return random.oneOf<Body>([
    () => ({ contentType: 'application/json-patch+json', bytes: jsonPatch(random) }),
    () => ({
      contentType: 'application/json-patch+json',
      bytes: random.oneOf(HOSTILE_PATCHES.map((make) => () => make(random))),
    }),
    () => ({ contentType: 'application/merge-patch+json', bytes: jsonText(random) }),
    () => ({ contentType: 'application/merge-patch+json', bytes: nearlyAnObject(random) }),
    () => ({ contentType: 'application/strategic-merge-patch+json', bytes: nearlyAnObject(random) }),
    () => ({
      contentType: 'application/apply-patch+yaml',
      bytes: random.oneOf(HOSTILE_YAML.map((make) => () => make(random))),
    }),
    () => ({ contentType: 'application/apply-patch+yaml', bytes: nearlyAnObject(random) }),
    () => ({ contentType: contentType(random), bytes: jsonText(random) }),
  ]);
}

function contentType(random: Seeded): string {
  return random.pick([
    '',
    'application/json',
    'application/json; charset=utf-16',
    'APPLICATION/JSON',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/cbor',
    ';',
    '/',
    'application/json, application/yaml',
    'a'.repeat(500),
    'application/json;;;=',
    'application/merge-patch+json',
    'application/vnd.kubernetes.protobuf',
    'application/yaml',
    '*/*',
    'x/y; a="',
    '\u00ff',
  ]);
}

/** A value of any shape, as text: sometimes cut, sometimes with a byte changed. */
function jsonText(random: Seeded): string {
  const text = value(random, 5);
  if (random.is(0.2)) return text.slice(0, random.integer(text.length + 1));
  if (random.is(0.1)) return text.replace(/[{}[\]",:]/, random.text(2));
  return text;
}

function value(random: Seeded, depth: number): string {
  const scalars = [
    () => JSON.stringify(random.text(20)),
    () =>
      random.pick([
        '0',
        '-1',
        '1e400',
        '-1e400',
        '9223372036854775808',
        '1.5',
        '1e-400',
        '-0',
        '123456789012345678901234567890',
        '0.1e1',
      ]),
    () =>
      random.pick([
        'true',
        'false',
        'null',
        '"\\ud800"',
        '"\\u0000"',
        '""',
        '"2026-13-45T99:99:99Z"',
        '"AAA="',
      ]),
  ];
  if (depth === 0) return random.oneOf(scalars);
  return random.oneOf([
    ...scalars,
    () => `[${several(random, () => value(random, depth - 1)).join(',')}]`,
    () => `{${several(random, () => `${key(random)}:${value(random, depth - 1)}`).join(',')}}`,
  ]);
}

function key(random: Seeded): string {
  return JSON.stringify(random.is(0.8) ? random.pick(WORDS) : random.text(10));
}

function several(random: Seeded, make: () => string): string[] {
  return Array.from({ length: random.integer(5) }, make);
}

/** Right at the top, wrong below. */
function nearlyAnObject(random: Seeded): string {
  const known = random.is(0.6) ? TYPE : random.pick(OTHER_TYPES);
  const type = random.is(0.9) ? known : { ...known, [random.pick(['kind', 'apiVersion'])]: random.text(10) };
  const head = JSON.stringify({
    ...type,
    metadata: { name: random.is(0.5) ? 'k-1' : random.text(12) },
  }).slice(0, -1);
  return `${head},${several(random, () => `${key(random)}:${value(random, 3)}`)
    .concat(`"spec":${value(random, 3)}`)
    .join(',')}}`;
}

const HOSTILE_JSON: readonly ((random: Seeded) => string | Buffer)[] = [
  () => '['.repeat(100_000),
  () => `${'['.repeat(5000)}${']'.repeat(5000)}`,
  () => `${'{"a":'.repeat(3000)}1${'}'.repeat(3000)}`,
  () =>
    `{"metadata":{"name":"k","labels":{${Array.from({ length: 5000 }, (_, n) => `"l${n}":"v"`).join(',')}}}}`,
  () => `{${Array.from({ length: 3000 }, (_, n) => `"unknown${n}":${n}`).join(',')}}`,
  () => `{${'"spec":{"ttl":1},'.repeat(1000)}"kind":"OwnedAccessKey"}`,
  () =>
    '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"polluted":true}},"metadata":{"__proto__":{"name":"x"}}}',
  () =>
    '{"metadata":{"name":"k","labels":{"__proto__":"x","constructor":"y"}},"spec":{"__proto__":{"user":"root"},"ttl":1}}',
  () => '\uFEFF{"kind":"OwnedAccessKey"}',
  () => '{"kind":"OwnedAccessKey"}{"kind":"OwnedAccessKey"}',
  () => '{"spec":{"ttl":1e999,"groups":[null,1,{}],"user":"\\ud800\\udfff\\ud800"}}',
  () => `{"metadata":{"name":"${'n'.repeat(100_000)}"}}`,
  () => `"${'\\u0041'.repeat(20_000)}"`,
  () => `{"spec":{"ttl":${'9'.repeat(20_000)}}}`,
  () =>
    Buffer.concat([
      Buffer.from('{"metadata":{"name":"'),
      Buffer.from([0xff, 0xfe, 0xc0, 0x80]),
      Buffer.from('"}}'),
    ]),
  () => Buffer.from('{"kind":"OwnedAccessKey"}', 'utf16le'),
  () => '',
  () => 'null',
  () => 'NaN',
  () => '{',
  () => '"',
  () => '\u0000'.repeat(1000),
  () => '// comment\n{}',
  () => "{'a':1}",
];

const HOSTILE_YAML: readonly ((random: Seeded) => string)[] = [
  () =>
    `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefgh'
      .split('')
      .map(
        (name, at) =>
          `${name}: &${name} [${Array(9)
            .fill(`*${'abcdefg'.charAt(at)}`)
            .join(',')}]`,
      )
      .join('\n')}\n`,
  () => 'a: &a\n  b: *a\n',
  () => '- '.repeat(3000),
  () => '['.repeat(3000),
  () => '{a: '.repeat(3000),
  () => `${Array.from({ length: 1500 }, (_, n) => `${' '.repeat(n)}a:`).join('\n')}\n`,
  () =>
    'kind: OwnedAccessKey\napiVersion: management.platform.sh/v1\nmetadata: !!js/function "function(){}"\n',
  () => 'kind: !!binary AAAA\nmetadata: !!set {a, b}\nspec: !<tag:example.com,2000:x> {ttl: 1}\n',
  () => 'base: &base {name: k-1}\nmetadata: {<<: *base}\nkind: OwnedAccessKey\n',
  () => '%YAML 9.9\n---\nkind: OwnedAccessKey\n',
  () => 'kind: OwnedAccessKey\n---\nkind: OwnedAccessKey\n',
  () => '__proto__: {polluted: true}\nconstructor: {prototype: {polluted: true}}\n',
  () => '? {a: 1}\n: b\n? [1, 2]\n: c\n1: 2\nnull: 3\n',
  () =>
    'spec: {ttl: 0x7fffffffffffffff, groups: [yes, no, 012, 1e3, .inf, .nan, 2026-01-01]}\nmetadata: {name: k-1}\n',
  () => '*unknown\n',
  () => '&a',
  () => '!!',
  () => '"unclosed',
  () => '\t\ta: b',
  () => '- a\nb: c',
  () => '---\n...\n---\n',
  () => '# only this',
  (random) => `key: |\n  ${'x'.repeat(random.integer(20_000))}\n`,
];

function jsonPatch(random: Seeded): string {
  const pointer = (): string =>
    several(random, () => `/${random.is(0.8) ? random.pick(WORDS) : random.text(6)}`).join('');
  const operation = (): string => {
    const op = random.pick(['add', 'remove', 'replace', 'move', 'copy', 'test', 'x', '__proto__', '']);
    const members = [`"op":${JSON.stringify(op)}`, `"path":${JSON.stringify(pointer())}`];
    if (random.is(0.6)) members.push(`"value":${value(random, 2)}`);
    if (random.is(0.5)) members.push(`"from":${JSON.stringify(pointer())}`);
    return `{${members.join(',')}}`;
  };
  return random.is(0.1)
    ? value(random, 3)
    : `[${Array.from({ length: 1 + random.integer(6) }, operation).join(',')}]`;
}

const DOUBLE =
  '{"op":"copy","from":"/metadata","path":"/metadata/annotations/x"},{"op":"copy","from":"/metadata","path":"/spec/x"}';

const HOSTILE_PATCHES: readonly ((random: Seeded) => string)[] = [
  () => `[{"op":"add","path":"/metadata/annotations","value":{}},${Array(100).fill(DOUBLE).join(',')}]`,
  () =>
    `[{"op":"add","path":"/spec/groups","value":["a"]},{"op":"replace","path":"/spec/groups/length","value":4294967295}]`,
  () => `[${Array(10_001).fill('{"op":"test","path":"","value":1}').join(',')}]`,
  () => `[${Array(2000).fill('{"op":"add","path":"/metadata/labels/x","value":"y"}').join(',')}]`,
  () =>
    '[{"op":"add","path":"/__proto__/polluted","value":true},{"op":"add","path":"/constructor/prototype/polluted","value":true}]',
  () => '[{"op":"copy","from":"/constructor","path":"/spec/description"}]',
  () => '[{"op":"copy","from":"/spec/toString","path":"/spec/description"}]',
  () => `[{"op":"add","path":"${'/a'.repeat(20_000)}","value":1}]`,
  () => '[{"op":"remove","path":""}]',
  () => '[{"op":"replace","path":"","value":null}]',
  () =>
    '[{"op":"add","path":"/spec/groups/-1","value":"x"},{"op":"add","path":"/spec/groups/1e9","value":"x"}]',
  () => '[{"op":"move","from":"/metadata","path":"/metadata/labels/x"}]',
  () => '[{"op":"move","from":"","path":"/spec/x"}]',
];

const MAGIC = Buffer.from('k8s\0');

function protobuf(random: Seeded): Buffer {
  const object = (raw: Buffer): Buffer => envelope(TYPE.apiVersion, TYPE.kind, raw);
  return random.oneOf([
    () => random.bytes(random.integer(200)),
    () => Buffer.concat([MAGIC, random.bytes(random.integer(200))]),
    () => object(random.bytes(random.integer(200))),
    () => object(Buffer.alloc(50_000, Buffer.from([0x0a, 0x00]))),
    () => object(Buffer.alloc(30_000, 0x0a)),
    () =>
      Buffer.concat([MAGIC, Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01])]),
  ]);
}
