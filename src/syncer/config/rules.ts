/** Rules between the fields of `sync` and `endpointSyncer`. */

import {
  errorAtKey,
  errorAtValue,
  type Fields,
  type Finding,
  missingMember,
  pathOf,
  warningAtKey,
} from '../../config-file/finding.ts';
import {
  areSet,
  implies,
  IS_ON,
  requires,
  within,
  type Rule,
  type SectionRule,
} from '../../config-file/rule.ts';
import { checkNamespaceMappings } from '../translate/namespace-mappings.ts';
import { isMultiNamespace } from './sync-fields.ts';
import { FLEET_NAMESPACES } from './fleet-rules.ts';

export function checkRules(fields: Fields): Finding[] {
  return RULES.flatMap((rule) => rule.check(fields));
}

// Rules of the whole file, and of vCluster's sections.

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
  check(fields) {
    const name = `${NAMESPACES}.mappings.byName`;
    const mappings = Object.entries(fields.object(name));
    if (!fields.isOn(IS_MAPPED)) {
      const isIgnored = mappings.length > 0 || fields.isOn(`${NAMESPACES}.mappingsOnly`);
      const message = `has no effect while ${IS_MAPPED} is false`;
      return isIgnored ? [warningAtKey(pathOf(NAMESPACES), message)] : [];
    }
    if (mappings.length === 0)
      return [errorAtKey(pathOf(name), `are empty: ${IS_MAPPED} needs at least one mapping`)];
    const problems = checkNamespaceMappings(
      Object.fromEntries(mappings.filter((one): one is [string, string] => typeof one[1] === 'string')),
      fields.text('endpointSyncer.name'),
      fields.text('endpointSyncer.host.namespace'),
    );
    return problems.map(({ key, message }) => errorAtKey([...pathOf(name), key], message));
  },
} satisfies Rule;

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

const RULES: readonly Rule[] = [NAMESPACE_MAPPINGS, ONE_NAMESPACE_MODE, FLEET_NAMESPACES, WHOLE_OWNER];
