/**
 * Rules between fields. Where JSON Schema can express one, its schema stands beside the check, so that an editor and the chart reject what `validate`
 * rejects. Patterns have no lookahead: Helm checks the chart's values with Go's regular expressions.
 */

import { isJsonObject, ownValue, type JsonObject } from '../base/json.ts';
import { labelKeyProblem, labelValueProblem } from '../kube/names.ts';
import {
  type DefaultOf,
  Fields,
  isMultiNamespace,
  pathOf,
  errorAtKey,
  errorAtValue,
  type Finding,
  missingMember,
  warningAtKey,
  warningAtValue,
  type ConfigPath,
  formatPath,
} from './finding.ts';
import { FLEET_NAMESPACES } from './fleet-rules.ts';
import { parseBindAddress } from '../base/bind-address.ts';

interface Rule {
  /** Of the section, or the field, that the rule is about. Absent if JSON Schema cannot express it. */
  readonly schema?: JsonObject;
  /** Reads the file as written, so that one invalid field does not hide another. */
  readonly check: (fields: Fields, checks: NamespaceChecks) => readonly Finding[];
}

/** The part of `ConfigChecks` that these rules need. */
export interface NamespaceChecks {
  /** Each problem names the mapping by its key. An empty host namespace means that it is not known yet. */
  checkNamespaceMappings(
    byName: Readonly<Record<string, string>>,
    vcluster: string,
    hostNamespace: string,
    /** Namespace of the Secrets of the key and token API; '' for the host namespace. */
    storeNamespace: string,
  ): readonly { readonly key: string; readonly message: string }[];
}

/** `merged`: the configuration file over vCluster's values. */
export function checkRules(merged: JsonObject, defaultOf: DefaultOf, checks: NamespaceChecks): Finding[] {
  const fields = new Fields(merged, defaultOf);
  return RULES.flatMap((rule) => rule.check(fields, checks));
}

// Parts of a JSON Schema.

/** Holds if all these members are present and not empty. */
function areSet(...members: readonly string[]): JsonObject {
  const properties = Object.fromEntries(members.map((member) => [member, { minLength: 1 }]));
  return { required: [...members], properties };
}

function requires(member: string, other: string): JsonObject {
  return implies(areSet(member), areSet(other));
}

/** `if` and `then` without an object that looks like a promise. */
function implies(condition: JsonObject, rule: JsonObject): JsonObject {
  return { anyOf: [{ not: condition }, rule] };
}

function within(path: readonly string[], rule: JsonObject): JsonObject {
  return path.reduceRight<JsonObject>(
    (inner, member) => ({ required: [member], properties: { [member]: inner } }),
    rule,
  );
}

const IS_ON = { required: ['enabled'], properties: { enabled: { const: true } } };

// Rules of the whole file, and of vCluster's sections.

/** A file without `endpointSyncer` is for the key and token API alone, which `validate` knows by the same sections. */
export const SECTIONS_SCHEMA = {
  anyOf: [{ required: ['endpointSyncer'] }, { required: ['managementApi'], not: { required: ['sync'] } }],
};

const NAMESPACES = 'sync.toHost.namespaces';
const IS_MAPPED = `${NAMESPACES}.enabled`;
const MULTI_NAMESPACE = 'experimental.multiNamespaceMode.enabled';

export const ONE_NAMESPACE_MODE = {
  schema: {
    not: {
      required: ['sync', 'experimental'],
      properties: {
        sync: within(['toHost', 'namespaces'], IS_ON),
        experimental: within(['multiNamespaceMode'], IS_ON),
      },
    },
  },
  check(fields) {
    if (!fields.isOn(IS_MAPPED) || !fields.isOn(MULTI_NAMESPACE)) return [];
    const message = `cannot be combined with ${IS_MAPPED}: both map the same namespaces, disable one of them`;
    return [errorAtValue(pathOf(MULTI_NAMESPACE), message)];
  },
} satisfies Rule;

const START = String.raw`([a-z0-9]|\$\{name\})`;
const ANY = String.raw`([-a-z0-9]|\$\{name\})`;
const EXACT = `^${START}(${ANY}*${START})?$`;

/** If they are enabled, at least one mapping: exact names to exact names, patterns to patterns with a prefix. */
export const NAMESPACE_MAPPINGS = {
  schema: implies(
    IS_ON,
    within(['mappings', 'byName'], {
      minProperties: 1,
      additionalProperties: false,
      patternProperties: {
        [EXACT]: { pattern: EXACT },
        [`^(${START}${ANY}*)?\\*$`]: { pattern: `^${START}${ANY}*\\*$` },
      },
    }),
  ),
  check(fields, checks) {
    const name = `${NAMESPACES}.mappings.byName`;
    const mappings = Object.entries(fields.object(name));
    if (!fields.isOn(IS_MAPPED)) {
      const isIgnored = mappings.length > 0 || fields.isOn(`${NAMESPACES}.mappingsOnly`);
      const message = `has no effect while ${IS_MAPPED} is false`;
      return isIgnored ? [warningAtKey(pathOf(NAMESPACES), message)] : [];
    }
    if (mappings.length === 0)
      return [errorAtKey(pathOf(name), `are empty: ${IS_MAPPED} needs at least one mapping`)];
    const problems = checks.checkNamespaceMappings(
      Object.fromEntries(mappings.filter((one): one is [string, string] => typeof one[1] === 'string')),
      fields.text('endpointSyncer.name'),
      fields.text('endpointSyncer.host.namespace'),
      fields.text('managementApi.store.namespace'),
    );
    return problems.map(({ key, message }) => errorAtKey([...pathOf(name), key], message));
  },
} satisfies Rule;

// Rules of one entry of `patches`.

const MODES = 'expression, labels or reference';

/** A rule between the members of one entry at `path`. */
interface EntryRule {
  readonly schema: JsonObject;
  readonly check: (entry: JsonObject, path: ConfigPath) => readonly Finding[];
}

/** Exactly one mode. */
export const ONE_MODE = {
  schema: {
    oneOf: [
      { anyOf: [areSet('expression'), areSet('reverseExpression')] },
      { required: ['reference'] },
      { required: ['labels'] },
    ],
  },
  check(entry, path) {
    const hasText = (key: string): boolean => (textMember(entry, key) ?? '') !== '';
    const used = [
      hasText('expression') || hasText('reverseExpression'),
      isSet(entry, 'labels'),
      isSet(entry, 'reference'),
    ].filter(Boolean).length;
    const where = formatPath(path);
    if (used > 1) return [errorAtKey(path, `${where} can only use one of: ${MODES}`)];
    if (used === 1) return [];
    // A member of the wrong type has its own finding, and it would be wrong to report that it is missing.
    const isMeant = ['expression', 'reverseExpression'].some(
      (key) => isSet(entry, key) && textMember(entry, key) === undefined,
    );
    if (isMeant) return [];
    const hint = Object.hasOwn(entry, 'labels')
      ? ' (an empty "labels:" counts as not set, write labels: {})'
      : ownValue(entry, 'expression') === null
        ? ` (null counts as not set, write expression: "null" for an expression that deletes what the path matches)`
        : '';
    const missing = ['expression', 'reverseExpression', 'labels', 'reference'].map((key) => [...path, key]);
    return [{ ...errorAtKey(path, `${where} need to use one of: ${MODES}${hint}`), missing }];
  },
} satisfies EntryRule;

/** With `namespacePath` alone only a namespace is rewritten: such a reference names no object. */
export const WHOLE_REFERENCE = {
  schema: { allOf: [requires('kindPath', 'namePath'), requires('apiVersionPath', 'namePath')] },
  check(entry, path) {
    const reference = ownValue(entry, 'reference');
    if (!isJsonObject(reference) || isSet(reference, 'namePath')) return [];
    return ['kindPath', 'apiVersionPath']
      .filter((key) => isSet(reference, key))
      .map((key) =>
        errorAtKey(
          [...path, 'reference', key],
          `namePath is required with ${key}: set it to the path of the name`,
        ),
      );
  },
} satisfies EntryRule;

export function textMember(object: JsonObject, key: string): string | undefined {
  const value = ownValue(object, key);
  return typeof value === 'string' ? value : undefined;
}

/** Present and neither null nor empty text. */
export function isSet(object: JsonObject, key: string): boolean {
  const value = ownValue(object, key);
  return value !== undefined && value !== null && value !== '';
}

// Rules of `endpointSyncer`.

/** What an API server would reject in a LabelSelector. */
function selectorRules(fields: Fields, name = 'endpointSyncer.selector'): Finding[] {
  const path = pathOf(name);
  const findings: Finding[] = [];
  for (const [key, value] of Object.entries(fields.object(`${name}.matchLabels`))) {
    const problem = labelKeyProblem(key);
    if (problem !== undefined) findings.push(errorAtKey([...path, 'matchLabels', key], problem));
    const wrong = typeof value === 'string' ? labelValueProblem(value) : undefined;
    if (wrong !== undefined) findings.push(errorAtValue([...path, 'matchLabels', key], wrong));
  }
  const expressions = fields.value(`${name}.matchExpressions`);
  for (const [at, one] of (Array.isArray(expressions) ? expressions : []).entries()) {
    if (!isJsonObject(one)) continue;
    const place = [...path, 'matchExpressions', at];
    const { key, operator, values } = one;
    const problem = typeof key === 'string' ? labelKeyProblem(key) : undefined;
    if (problem !== undefined) findings.push(errorAtValue([...place, 'key'], problem));
    const list = Array.isArray(values) ? values : [];
    for (const [index, value] of list.entries()) {
      const wrong = typeof value === 'string' ? labelValueProblem(value) : undefined;
      if (wrong !== undefined) findings.push(errorAtValue([...place, 'values', index], wrong));
    }
    const isSet = operator === 'In' || operator === 'NotIn';
    if (isSet && list.length === 0)
      findings.push(errorAtKey(place, `the operator ${operator} needs at least one value`));
    if ((operator === 'Exists' || operator === 'DoesNotExist') && list.length > 0)
      findings.push(errorAtValue([...place, 'values'], `the operator ${operator} has no values`));
  }
  return findings;
}

export const ONE_VIRTUAL_KUBECONFIG = {
  schema: { not: areSet('kubeconfig', 'secret') },
  check(fields) {
    const [kubeconfig, secret] = ['endpointSyncer.virtual.kubeconfig', 'endpointSyncer.virtual.secret'];
    if (fields.text(kubeconfig) === '' || fields.text(secret) === '') return [];
    return [errorAtValue(pathOf(secret), `cannot be combined with ${kubeconfig}: set one of the two`)];
  },
} satisfies Rule;

const HOST = String.raw`([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?`;

export const SERVER_URL = {
  schema: { pattern: String.raw`^(https?://${HOST}(/[^\s?#@]*)?)?$` },
  check(fields) {
    const server = 'endpointSyncer.virtual.server';
    if (fields.text(server) === '') return [];
    const url = URL.parse(fields.text(server));
    if (url !== null && /^https?:$/u.test(url.protocol) && isPlain(url)) return [];
    const message = 'must be the URL of an API server such as https://my-vcluster.team-a';
    return [errorAtValue(pathOf(server), message)];
  },
} satisfies Rule;

/** Without user, query and fragment. */
function isPlain({ search, hash, username, password }: URL): boolean {
  return [search, hash, username, password].every((part) => part === '');
}

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

export const WHOLE_OWNER = {
  schema: {
    allOf: [
      // A Service without a name is vCluster's.
      { anyOf: [{ not: areSet('kind') }, { properties: { kind: { const: 'Service' } } }, areSet('name')] },
      requires('name', 'kind'),
      requires('apiVersion', 'kind'),
      implies(areSet('kind'), {
        anyOf: [areSet('apiVersion'), { properties: { kind: { enum: [...OWNER_API_VERSIONS.keys()] } } }],
      }),
    ],
  },
  check(fields) {
    const path = pathOf('endpointSyncer.owner');
    const [apiVersion = '', kind = '', name = ''] = ['apiVersion', 'kind', 'name'].map((key) =>
      fields.text(`endpointSyncer.owner.${key}`),
    );
    if (apiVersion === '' && kind === '' && name === '') return [];
    const isNamed = name !== '' || kind === 'Service';
    const missing = [...(kind === '' ? ['kind'] : []), ...(isNamed ? [] : ['name'])];
    const findings = missing.map((key) =>
      missingMember([...path, key], 'is required if endpointSyncer.owner is set'),
    );
    if (kind !== '' && apiVersion === '' && !OWNER_API_VERSIONS.has(kind))
      findings.push(missingMember([...path, 'apiVersion'], `is required for the kind ${kind}`));
    if (isMultiNamespace(fields))
      findings.push(
        warningAtKey(
          path,
          'has no effect with several host namespaces: an owner must be in the namespace of its copies',
        ),
      );
    return findings;
  },
} satisfies Rule;

/** Pairs of durations of a section, of which the first must not be the longer one. */
const ORDERED_DURATIONS = [
  ['endpointSyncer.sandbox', 'expressionTimeout', 'batchTimeout'],
  ['endpointSyncer.leaderElection', 'renewDeadline', 'leaseDuration'],
  ['endpointSyncer.leaderElection', 'retryPeriod', 'renewDeadline'],
  ['managementApi.tokenTtl', 'default', 'max'],
] as const;

function durationRules(fields: Fields): Finding[] {
  return ORDERED_DURATIONS.flatMap(([section, shorter, longer]) => {
    const [low, high] = [`${section}.${shorter}`, `${section}.${longer}`];
    if (!(fields.durationMs(low) > fields.durationMs(high))) return [];
    const at = fields.value(high) === undefined ? low : high;
    const message = `${shorter} (${fields.textOrDefault(low)}) must not be longer than ${longer} (${fields.textOrDefault(high)})`;
    return [errorAtValue(pathOf(at), message)];
  });
}

/** What every member of a fleet gets has the rules of `endpointSyncer` itself. */
function defaultsRules(fields: Fields): Finding[] {
  const section = 'endpointSyncer.defaults';
  const defaults = fields.within({ endpointSyncer: fields.object(section) });
  return [...selectorRules(defaults), ...WHOLE_OWNER.check(defaults), ...durationRules(defaults)].map(
    (finding) => ({ ...finding, path: [...pathOf(section), ...finding.path.slice(1)] }),
  );
}

// Rules of `managementApi`.

export const WHOLE_CERTIFICATE = {
  schema: { allOf: [requires('certFile', 'keyFile'), requires('keyFile', 'certFile')] },
  check(fields) {
    const files = ['managementApi.tls.certFile', 'managementApi.tls.keyFile'];
    const missing = files.filter((file) => fields.text(file) === '');
    const [there] = files.filter((file) => fields.text(file) !== '');
    if (there === undefined) return [];
    return missing.map((file) => errorAtKey(pathOf(file), `is required with ${there}`));
  },
} satisfies Rule;

/** The issuers that a kube-apiserver accepts. */
export const ISSUER_URL = {
  schema: { pattern: String.raw`^(https://${HOST}(/[^\s?#@]*)?)?$` },
  check(fields) {
    const issuer = 'managementApi.issuer';
    if (fields.text(issuer) === '') return [];
    const url = URL.parse(fields.text(issuer));
    if (url?.protocol !== 'https:') return [errorAtValue(pathOf(issuer), 'must be an https:// URL')];
    return isPlain(url) ? [] : [errorAtValue(pathOf(issuer), 'must have no user, query or fragment')];
  },
} satisfies Rule;

/** The server listens on all addresses; a client cannot connect to these. */
const UNSPECIFIED_HOSTS: ReadonlySet<string> = new Set(['', '0.0.0.0', '::']);

function addressRules(fields: Fields): Finding[] {
  const name = 'managementApi.bindAddress';
  const address = parseBindAddress(fields.text(name));
  if (address === undefined) return [];
  const findings: Finding[] = [];
  if (UNSPECIFIED_HOSTS.has(address.host) && fields.text('managementApi.issuer') === '') {
    const message =
      'clients cannot connect to this address, and it is the default issuer of tokens: set managementApi.issuer to the URL at which clusters reach this API';
    findings.push(warningAtValue(pathOf(name), message));
  }
  const other = parseBindAddress(fields.textOrDefault('endpointSyncer.http.bindAddress'));
  const isSame = other?.port === address.port && other.host === address.host;
  if (fields.isOn('managementApi.enabled') && isSame && address.port !== 0) {
    findings.push(errorAtValue(pathOf(name), 'is also endpointSyncer.http.bindAddress: choose another port'));
  }
  return findings;
}

/** A token cannot outlive the key that issued it. */
function lifetimeRules(fields: Fields): Finding[] {
  const longestMs = fields.durationMs('managementApi.maxTtl');
  if (!(longestMs > 0)) return [];
  return ['default', 'max'].flatMap((field) => {
    const name = `managementApi.tokenTtl.${field}`;
    const text = fields.text(name);
    if (text === '' || !(fields.durationMs(name) > longestMs)) return [];
    const longest = fields.text('managementApi.maxTtl');
    const message = `${field} (${text}) is longer than managementApi.maxTtl (${longest}): a token expires with its key at the latest`;
    return [warningAtValue(pathOf(name), message)];
  });
}

function storeRules(fields: Fields): Finding[] {
  const name = 'managementApi.store.driver';
  if (fields.text(name) === 'kubernetes') return storeNamespaceRules(fields);
  if (fields.text(name) !== 'memory') return [];
  return [warningAtValue(pathOf(name), 'all keys are lost when the process exits; use it for tests only')];
}

/** In the host namespace, references of tenants can name the Secrets of the store. */
function storeNamespaceRules(fields: Fields): Finding[] {
  const [store, host] = ['managementApi.store.namespace', 'endpointSyncer.host.namespace'];
  const isShared = fields.text(store) === '' || fields.text(store) === fields.text(host);
  if (!fields.isOn('managementApi.enabled') || !isShared) return [];
  const message =
    "the Secrets of the key store are in the virtual cluster's host namespace, where references of tenants can name them: " +
    `set ${store} to a separate namespace`;
  return [warningAtValue(pathOf('managementApi.store.driver'), message)];
}

const RULES: readonly Rule[] = [
  NAMESPACE_MAPPINGS,
  ONE_NAMESPACE_MODE,
  { check: (fields) => selectorRules(fields) },
  FLEET_NAMESPACES,
  { check: (fields) => selectorRules(fields, 'endpointSyncer.fleet.selector') },
  { check: defaultsRules },
  ONE_VIRTUAL_KUBECONFIG,
  SERVER_URL,
  WHOLE_OWNER,
  { check: durationRules },
  WHOLE_CERTIFICATE,
  ISSUER_URL,
  { check: addressRules },
  { check: lifetimeRules },
  { check: storeRules },
];
