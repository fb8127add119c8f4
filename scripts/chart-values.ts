/** What is generated from the Helm chart's values: their JSON Schema, and the table in the chart's README. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml';
import type { JsonObject, JsonValue } from '../src/base/json.ts';
import { configJsonSchema } from '../src/cli/config/schema.ts';

const CHART = join(import.meta.dirname, '..', 'charts', 'endpoint-syncer');
export const CHART_SCHEMA_FILE = join(CHART, 'values.schema.json');
export const CHART_README_FILE = join(CHART, 'README.md');

const TEXT = { type: 'string' };
const SWITCH = { type: 'boolean' };
const OBJECT = { type: 'object' };
const TEXTS = { type: 'object', additionalProperties: TEXT };
const LIST = { type: 'array' };
const OBJECTS = { type: 'array', items: OBJECT };

const VALUES: Readonly<Record<string, JsonObject>> = {
  sidecar: SWITCH,
  vclusterConfigSecret: TEXT,
  replicaCount: { type: 'integer', minimum: 0 },
  image: section({ repository: TEXT, tag: TEXT, digest: TEXT, pullPolicy: TEXT }),
  imagePullSecrets: OBJECTS,
  nameOverride: TEXT,
  fullnameOverride: TEXT,
  serviceAccount: section({ create: SWITCH, name: TEXT, annotations: TEXTS }),
  rbac: section({ create: SWITCH, extraRules: OBJECTS, extraClusterRules: OBJECTS }),
  extraArgs: { type: 'array', items: TEXT },
  env: OBJECTS,
  podAnnotations: TEXTS,
  podLabels: TEXTS,
  priorityClassName: TEXT,
  nodeSelector: TEXTS,
  tolerations: OBJECTS,
  affinity: OBJECT,
  topologySpreadConstraints: OBJECTS,
  terminationGracePeriodSeconds: { type: 'integer', minimum: 0 },
  resources: OBJECT,
  podSecurityContext: OBJECT,
  securityContext: OBJECT,
  persistence: section({ enabled: SWITCH, size: TEXT, storageClassName: TEXT, existingClaim: TEXT }),
  networkPolicy: section({ enabled: SWITCH, metricsFrom: OBJECTS, apiFrom: OBJECTS, egressPorts: LIST }),
  serviceMonitor: section({ enabled: SWITCH, labels: TEXTS, interval: TEXT }),
  prometheusRule: section({ enabled: SWITCH, labels: TEXTS }),
  dashboard: section({ enabled: SWITCH, labels: TEXTS }),
  global: OBJECT,
};

interface ConfigSchema extends JsonObject {
  readonly properties: JsonObject & { readonly endpointSyncer: JsonObject };
}

/** Text of `values.schema.json`. */
export function chartSchema(): string {
  // The schema's own $id would be the base of the references to its definitions, which are at the root here.
  const {
    $schema,
    $id: _id,
    definitions,
    properties,
    ...config
  } = JSON.parse(configJsonSchema()) as ConfigSchema; // our own
  // `helm lint` passes with the default values; the template says that the name is required without a fleet.
  const { required: _required, anyOf: _nameOrFleet, ...endpointSyncer } = properties.endpointSyncer;
  const file = { ...config, properties: { ...properties, endpointSyncer }, required: ['endpointSyncer'] };
  const schema = {
    $schema: $schema ?? null,
    title: 'Values of the endpoint-syncer chart',
    ...section({ config: file, ...VALUES }),
    definitions: definitions ?? {},
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

function section(properties: Readonly<Record<string, JsonValue>>): JsonObject {
  return { type: 'object', properties: { ...properties }, additionalProperties: false };
}

/** Text of the chart's README.md, with the table of its values up to date. */
export function chartReadme(): string {
  const { contents } = parseDocument(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
  const rows = isMap(contents) ? valueRows(contents, '') : [];
  const table = ['| value | default | description |', '|---|---|---|', ...rows].join('\n');
  const replaced = /(<!-- values -->\n)[^]*?(<!-- end -->)/u;
  return readFileSync(CHART_README_FILE, 'utf8').replace(replaced, (_, begin: string, end: string) => {
    return `${begin}${table}\n${end}`;
  });
}

/** One row for each value, with the comment above it; what is written in one line is one value. */
function valueRows(values: YAMLMap, path: string): string[] {
  return values.items.flatMap(({ key, value }: Pair, index) => {
    if (!isScalar(key)) return [];
    const name = `${path}${String(key.value)}`;
    // The parser gives the comment above the first key to the mapping.
    const comment = (index === 0 ? values.commentBefore : undefined) ?? key.commentBefore ?? '';
    const text = comment.replaceAll(/\s+/gu, ' ').trim().replaceAll('|', '\\|');
    const isSection = isMap(value) && value.flow !== true && name !== 'config';
    if (isSection) return [...(text === '' ? [] : [row(name, '', text)]), ...valueRows(value, `${name}.`)];
    const shown = name === 'config' ? '' : `\`${JSON.stringify(value)}\``;
    return [row(name, shown, text)];
  });
}

function row(name: string, shown: string, text: string): string {
  return `| \`${name}\` | ${shown} | ${text} |`;
}
