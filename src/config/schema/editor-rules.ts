/**
 * Rules between fields as JSON Schema, so that an editor and the chart reject what `rules.ts` rejects. Patterns have no lookahead: Helm checks
 * the chart's values with Go's regular expressions.
 */

import type { JsonObject } from '../../base/json.ts';

/** Kinds of owners whose apiVersion is optional. */
export const OWNER_API_VERSIONS: ReadonlyMap<string, string> = new Map([
  ['Pod', 'v1'],
  ['Service', 'v1'],
  ['ConfigMap', 'v1'],
  ['Secret', 'v1'],
  ['ServiceAccount', 'v1'],
  ['StatefulSet', 'apps/v1'],
  ['Deployment', 'apps/v1'],
  ['DaemonSet', 'apps/v1'],
  ['ReplicaSet', 'apps/v1'],
]);

/** Holds if all these members are present and not empty. */
function areSet(...members: readonly string[]): JsonObject {
  const properties = Object.fromEntries(members.map((member) => [member, { minLength: 1 }]));
  return { required: [...members], properties };
}

function neverTogether(...members: readonly string[]): JsonObject {
  return { not: areSet(...members) };
}

function requires(member: string, other: string): JsonObject {
  return implies(areSet(member), areSet(other));
}

/** `if` and `then` without an object that looks like a promise. */
function implies(condition: JsonObject, rule: JsonObject): JsonObject {
  return { anyOf: [{ not: condition }, rule] };
}

/** Exactly one mode. */
export const PATCH_RULES = {
  oneOf: [
    { anyOf: [areSet('expression'), areSet('reverseExpression')] },
    { required: ['reference'] },
    { required: ['labels'] },
  ],
};

export const REFERENCE_RULES = {
  allOf: [requires('kindPath', 'namePath'), requires('apiVersionPath', 'namePath')],
};

export const VIRTUAL_RULES = neverTogether('kubeconfig', 'secret');

export const OWNER_RULES = {
  allOf: [
    { anyOf: [{ not: areSet('kind') }, { properties: { kind: { const: 'Service' } } }, areSet('name')] },
    requires('name', 'kind'),
    requires('apiVersion', 'kind'),
    implies(areSet('kind'), {
      anyOf: [areSet('apiVersion'), { properties: { kind: { enum: [...OWNER_API_VERSIONS.keys()] } } }],
    }),
  ],
};

export const CERTIFICATE_RULES = {
  allOf: [requires('certFile', 'keyFile'), requires('keyFile', 'certFile')],
};

const IS_ON = { required: ['enabled'], properties: { enabled: { const: true } } };

const START = String.raw`([a-z0-9]|\$\{name\})`;
const ANY = String.raw`([-a-z0-9]|\$\{name\})`;
const EXACT = `^${START}(${ANY}*${START})?$`;

/** If they are enabled, at least one mapping: exact names to exact names, patterns to patterns with a prefix. */
export const NAMESPACES_RULES = implies(
  IS_ON,
  within(['mappings', 'byName'], {
    minProperties: 1,
    additionalProperties: false,
    patternProperties: {
      [EXACT]: { pattern: EXACT },
      [`^(${START}${ANY}*)?\\*$`]: { pattern: `^${START}${ANY}*\\*$` },
    },
  }),
);

/** A file without `endpointSyncer` is for the key and token API alone; and there is one rule for namespaces. */
export const FILE_RULES = {
  anyOf: [{ required: ['endpointSyncer'] }, { required: ['managementApi'], not: { required: ['sync'] } }],
  not: {
    required: ['sync', 'experimental'],
    properties: {
      sync: within(['toHost', 'namespaces'], IS_ON),
      experimental: within(['multiNamespaceMode'], IS_ON),
    },
  },
};

function within(path: readonly string[], rule: JsonObject): JsonObject {
  return path.reduceRight<JsonObject>(
    (inner, member) => ({ required: [member], properties: { [member]: inner } }),
    rule,
  );
}

const HOST = String.raw`([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?`;

/** URLs without user, query and fragment. */
export const SERVER_URL_PATTERN = String.raw`^(https?://${HOST}(/[^\s?#@]*)?)?$`;
export const ISSUER_PATTERN = String.raw`^(https://${HOST}(/[^\s?#@]*)?)?$`;
