/**
 * Rules between fields. Where JSON Schema can express one, its schema stands beside the check, so that an editor and the chart reject what `validate`
 * rejects. Patterns have no lookahead: Helm checks the chart's values with Go's regular expressions.
 */

import { isJsonObject, ownValue, type JsonObject } from '../base/json.ts';
import {
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
import { formatDuration, parseDuration } from './units.ts';

/** A rule between the fields of one section, which is part of its schema and holds wherever the section stands. */
export interface SectionRule<T> {
  /** Absent if JSON Schema cannot express it. */
  readonly schema?: JsonObject;
  /** Gets the section with its defaults, and returns paths below it. */
  readonly check: (section: T) => readonly SectionFinding[];
}

export interface SectionFinding extends Finding {
  /** The other field that the finding is about: the place if the file has this one only. */
  readonly other?: string;
}

/** A rule between sections. */
interface Rule {
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

export function checkRules(merged: JsonObject, checks: NamespaceChecks): Finding[] {
  const fields = new Fields(merged);
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

export function isSet(object: JsonObject, key: string): boolean {
  const value = ownValue(object, key);
  return value !== undefined && value !== null && value !== '';
}

// Rules of `endpointSyncer`.

export const VALUES_OF_OPERATOR: SectionRule<{
  readonly operator: string;
  readonly values: readonly string[];
}> = {
  check({ operator, values }) {
    const needsValues = operator === 'In' || operator === 'NotIn';
    if (needsValues === values.length > 0) return [];
    return [
      needsValues
        ? errorAtKey([], `the operator ${operator} needs at least one value`)
        : errorAtValue(['values'], `the operator ${operator} has no values`),
    ];
  },
};

export const ONE_VIRTUAL_KUBECONFIG = {
  schema: { not: areSet('kubeconfig', 'secret') },
  check({ kubeconfig, secret }) {
    if (kubeconfig === '' || secret === '') return [];
    return [errorAtValue(['secret'], 'cannot be combined with kubeconfig: set one of the two')];
  },
} satisfies SectionRule<{ readonly kubeconfig: string; readonly secret: string }>;

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
    return ['endpointSyncer.owner', 'endpointSyncer.defaults.owner'].flatMap((owner) =>
      ownerFindings(fields, owner),
    );
  },
} satisfies Rule;

function ownerFindings(fields: Fields, owner: string): Finding[] {
  const path = pathOf(owner);
  const [apiVersion = '', kind = '', name = ''] = ['apiVersion', 'kind', 'name'].map((key) =>
    fields.text(`${owner}.${key}`),
  );
  if (apiVersion === '' && kind === '' && name === '') return [];
  const isNamed = name !== '' || kind === 'Service';
  const missing = [...(kind === '' ? ['kind'] : []), ...(isNamed ? [] : ['name'])];
  const findings = missing.map((key) => missingMember([...path, key], `is required if ${owner} is set`));
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
}

/** The first duration must not be longer than the second one. JSON Schema cannot compare them. */
export function ordered<K extends string>(shorter: K, longer: K): SectionRule<Readonly<Record<K, number>>> {
  return {
    check({ [shorter]: low, [longer]: high }) {
      if (!(low > high)) return [];
      const message = `${shorter} (${formatDuration(low)}) must not be longer than ${longer} (${formatDuration(high)})`;
      return [{ ...errorAtValue([longer], message), other: shorter }];
    },
  };
}

// Rules of `managementApi`.

export const WHOLE_CERTIFICATE = {
  schema: { allOf: [requires('certFile', 'keyFile'), requires('keyFile', 'certFile')] },
  check({ certFile, keyFile }) {
    if ((certFile === '') === (keyFile === '')) return [];
    const [missing, there] = certFile === '' ? ['certFile', 'keyFile'] : ['keyFile', 'certFile'];
    return [missingMember([missing], `is required with ${there}`)];
  },
} satisfies SectionRule<{ readonly certFile: string; readonly keyFile: string }>;

/** The default of `endpointSyncer.http.bindAddress`. */
export const HTTP_ADDRESS = '127.0.0.1:8080';

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
  const other = parseBindAddress(fields.text('endpointSyncer.http.bindAddress', HTTP_ADDRESS));
  const isSame = other?.port === address.port && other.host === address.host;
  if (fields.isOn('managementApi.enabled') && isSame && address.port !== 0) {
    findings.push(errorAtValue(pathOf(name), 'is also endpointSyncer.http.bindAddress: choose another port'));
  }
  return findings;
}

/** A token cannot outlive the key that issued it. */
function lifetimeRules(fields: Fields): Finding[] {
  const longest = fields.text('managementApi.maxTtl');
  const longestMs = parseDuration(longest) ?? 0;
  if (longestMs === 0) return [];
  return ['default', 'max'].flatMap((field) => {
    const name = `managementApi.tokenTtl.${field}`;
    const text = fields.text(name);
    if ((parseDuration(text) ?? 0) <= longestMs) return [];
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
  FLEET_NAMESPACES,
  WHOLE_OWNER,
  { check: addressRules },
  { check: lifetimeRules },
  { check: storeRules },
];
