/** The schema, the default file and the examples in `config/` match the program. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { FLAGS, flagFields } from '../../../src/cli/config/flags.ts';
import { configJsonSchema, configSchema, flagFieldsJson } from '../../../src/cli/config/schema.ts';
import { knownKeys } from '../../../src/config-file/schema-check.ts';
import { parseText, validConfig } from './setup.ts';

const FOLDER = join(import.meta.dirname, '..', '..', '..', 'config');
const EXAMPLES = readdirSync(join(FOLDER, 'examples'))
  .filter((name) => !name.endsWith('-test.yaml'))
  .map((name) => join('examples', name));
const DEFAULT_FILE = 'endpoint-syncer.yaml';

function read(name: string): string {
  return readFileSync(join(FOLDER, name), 'utf8');
}

describe('the JSON Schema', () => {
  test('config/schema.json is up to date', () => {
    expect(read('schema.json')).toBe(configJsonSchema());
  });

  const schema = JSON.parse(configJsonSchema()) as Node;

  test('own sections are closed, sections of vCluster are open', () => {
    const isOpen = (...path: string[]): boolean => at(schema, path)?.additionalProperties !== false;
    expect(isOpen()).toBe(true);
    expect(isOpen('sync', 'toHost')).toBe(true);
    expect(isOpen('sync', 'toHost', 'secrets')).toBe(true);
    expect(isOpen('sync', 'toHost', 'endpoints')).toBe(false);
    expect(isOpen('endpointSyncer')).toBe(false);
    expect(isOpen('endpointSyncer', 'sandbox')).toBe(false);
    expect(isOpen('managementApi', 'store')).toBe(false);
  });

  test('only the name is required, or a fleet', () => {
    const { required, anyOf } = at(schema, ['endpointSyncer']) ?? {};
    expect(required).toEqual([]);
    expect(anyOf?.map((one) => one.required)).toEqual([['name'], ['fleet']]);
    expect([schema.required ?? [], at(schema, ['managementApi'])?.required ?? []]).toEqual([[], []]);
  });

  test('every field of our own sections has a description', () => {
    const bare = [...leaves(schema, ['endpointSyncer']), ...leaves(schema, ['managementApi'])]
      .filter(([, node]) => node.description === undefined)
      .map(([path]) => path);
    expect(bare).toEqual([]);
  });

  test('every field of endpointSyncer has a flag, except lists and maps, and those of a fleet', () => {
    const fields = leaves(schema, ['endpointSyncer'])
      .map(([path]) => path.split('.').slice(1).join('.'))
      .filter((field) => !/^(?:fleet|defaults)\./u.test(field));
    const flags = new Set(flagFields('endpointSyncer'));
    expect(fields.filter((field) => !flags.has(field))).toEqual([
      'metadata.excludeAnnotations',
      'metadata.excludeLabels',
      'selector.matchLabels',
      'selector.matchExpressions',
      'namespaces.include',
      'namespaces.exclude',
      'references.refuseSecrets',
    ]);
    expect([...flags].filter((field) => !fields.includes(field))).toEqual([]);
  });

  test('every field of managementApi has a flag, except those of the file alone', () => {
    const fields = leaves(schema, ['managementApi']).map(([path]) => path.split('.').slice(1).join('.'));
    const isInFileOnly = (field: string): boolean => field === 'enabled' || field.startsWith('auditLog.');
    expect(fields.filter((field) => !isInFileOnly(field)).toSorted()).toEqual(
      flagFields('managementApi').toSorted(),
    );
  });

  test('flags and fields are unique', () => {
    expect(new Set(FLAGS.map(({ flag }) => flag)).size).toBe(FLAGS.length);
    expect(new Set(FLAGS.map(({ field }) => field)).size).toBe(FLAGS.length);
  });

  test('src/cli/config/flag-fields.json is up to date (npm run schema -- --write)', () => {
    expect(read('../src/cli/config/flag-fields.json')).toBe(flagFieldsJson());
  });
});

describe('the annotated default', () => {
  const text = read(DEFAULT_FILE);

  test('has exactly the default values', () => {
    expect(parseText(text).problems).toEqual([]);
    const { vclusterValues, ...config } = validConfig(text);
    const { vclusterValues: defaults, ...expected } = validConfig('endpointSyncer: {name: my-vcluster}');
    expect(config).toEqual(expected);
    expect(vclusterValues).toMatchObject(defaults);
  });

  test('shows every field', () => {
    const shown = parse(text) as Record<string, unknown>;
    for (const section of ['endpointSyncer', 'managementApi']) {
      const missing = leaves(JSON.parse(configJsonSchema()) as Node, [section])
        .map(([path]) => path)
        // The fields of `endpointSyncer` again.
        .filter((path) => !path.startsWith('endpointSyncer.defaults.'))
        .filter((path) => path.split('.').reduce<unknown>(member, shown) === undefined);
      expect(missing).toEqual([]);
    }
    expect(knownKeys([], configSchema).every((key) => Object.hasOwn(shown, key))).toBe(true);
  });
});

describe('examples', () => {
  test.each([...EXAMPLES, DEFAULT_FILE])('%s is valid and names its schema', (name) => {
    const text = read(name);
    const schema = name.startsWith('examples') ? '../schema.json' : 'schema.json';
    expect(text.startsWith(`# yaml-language-server: $schema=${schema}\n`)).toBe(true);
    expect(parseText(text).problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  test('all four patch modes are shown', () => {
    const patches = EXAMPLES.flatMap((name) => validConfig(read(name)).sync.endpoints.patches);
    for (const mode of ['expression', 'reverseExpression', 'reference', 'labels'] as const) {
      expect(patches.some((patch) => patch[mode] !== undefined)).toBe(true);
    }
  });
});

interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Node[];
  readonly additionalProperties?: unknown;
}

function at(schema: Node, path: readonly string[]): Node | undefined {
  return path.reduce<Node | undefined>((node, key) => node?.properties?.[key], schema);
}

/** Fields that are no sections, with their dotted paths. */
function leaves(schema: Node, path: readonly string[]): [string, Node][] {
  const node = at(schema, path);
  if (node?.properties === undefined) return node === undefined ? [] : [[path.join('.'), node]];
  return Object.keys(node.properties).flatMap((key) => leaves(schema, [...path, key]));
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined; // our own file
}
