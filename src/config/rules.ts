/** What must hold between fields. Works on what the user wrote, so that one wrong field does not hide the next. */

import type { JsonObject } from '../lib/json.ts';
import { Fields, isMultiNamespace, pathOf } from './fields.ts';
import { errorAtKey, errorAtValue, type Finding, warningAtKey } from './finding.ts';
import { managementRules } from './management-rules.ts';
import type { ConfigChecks } from './types.ts';

/** Every finding that needs more than one field. `written` is the user's configuration without empty keys. */
export function checkRules(written: JsonObject, checks: ConfigChecks): Finding[] {
  const fields = new Fields(written);
  return [
    ...notBuiltYet(fields),
    ...namespaceRules(fields, checks),
    ...accessRules(fields),
    ...ownerRules(fields),
    ...durationRules(fields),
    ...managementRules(fields),
  ];
}

/** Features that are designed but not there: switched on they must not be accepted in silence. */
function notBuiltYet(fields: Fields): Finding[] {
  const findings: Finding[] = [];
  const refuse = (dotted: string, message: string): void => {
    findings.push(errorAtValue(pathOf(dotted), message));
  };
  if (fields.isOn('endpointSyncer.leaderElection.enabled')) {
    refuse(
      'endpointSyncer.leaderElection.enabled',
      'leader election is not available in this version: set it to false and run one replica',
    );
  }
  if (fields.isOn('sync.toHost.endpointSlices.enabled')) {
    refuse(
      'sync.toHost.endpointSlices.enabled',
      'syncing EndpointSlices is not available in this version: set it to false, the host makes slices from the synced Endpoints itself',
    );
  }
  const patches = fields.value('sync.toHost.endpointSlices.patches');
  if (Array.isArray(patches) && patches.length > 0) {
    refuse(
      'sync.toHost.endpointSlices.patches',
      'syncing EndpointSlices is not available in this version: remove these patches',
    );
  }
  return findings;
}

function namespaceRules(fields: Fields, checks: ConfigChecks): Finding[] {
  const enabledPath = 'sync.toHost.namespaces.enabled';
  const byNamePath = pathOf('sync.toHost.namespaces.mappings.byName');
  const byName = fields.object('sync.toHost.namespaces.mappings.byName');
  const isMapped = fields.isOn(enabledPath);
  const isLegacy = fields.isOn('experimental.multiNamespaceMode.enabled');
  if (!isMapped) {
    const isUseless = Object.keys(byName).length > 0 || fields.isOn('sync.toHost.namespaces.mappingsOnly');
    return isUseless
      ? [warningAtKey(pathOf('sync.toHost.namespaces'), `has no effect while ${enabledPath} is false`)]
      : [];
  }
  const findings: Finding[] = [];
  if (isLegacy) {
    findings.push(
      errorAtValue(
        pathOf('experimental.multiNamespaceMode.enabled'),
        `cannot be combined with ${enabledPath}: two rules for the same namespaces, switch one off`,
      ),
    );
  }
  if (Object.keys(byName).length === 0) {
    findings.push(errorAtKey(byNamePath, `are empty: ${enabledPath} needs at least one mapping`));
  }
  const texts: Record<string, string> = {};
  for (const [key, value] of Object.entries(byName)) if (typeof value === 'string') texts[key] = value;
  const name = fields.text('endpointSyncer.name');
  for (const { key, message } of checks.checkNamespaceMappings(
    texts,
    name,
    fields.text('endpointSyncer.host.namespace'),
  )) {
    findings.push(errorAtKey([...byNamePath, key], message));
  }
  return findings;
}

function accessRules(fields: Fields): Finding[] {
  const [kubeconfig, secret] = ['endpointSyncer.virtual.kubeconfig', 'endpointSyncer.virtual.secret'];
  if (fields.text(kubeconfig) === '' || fields.text(secret) === '') return [];
  return [errorAtValue(pathOf(secret), `cannot be combined with ${kubeconfig}: set one of the two`)];
}

/** Owners of which everybody knows the apiVersion. */
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

function ownerRules(fields: Fields): Finding[] {
  const owner = 'endpointSyncer.owner';
  const has = (key: string): boolean => fields.text(`${owner}.${key}`) !== '';
  if (!has('kind') && !has('name') && !has('apiVersion')) return [];
  const findings: Finding[] = [];
  for (const key of ['kind', 'name']) {
    if (!has(key)) findings.push(errorAtKey(pathOf(`${owner}.${key}`), 'is required when an owner is named'));
  }
  if (has('kind') && !has('apiVersion') && !OWNER_API_VERSIONS.has(fields.text(`${owner}.kind`))) {
    const message = `is required for the kind ${fields.text(`${owner}.kind`)}`;
    findings.push(errorAtKey(pathOf(`${owner}.apiVersion`), message));
  }
  if (isMultiNamespace(fields)) {
    findings.push(
      warningAtKey(
        pathOf(owner),
        'has no effect with several host namespaces: an owner must be in the same one',
      ),
    );
  }
  return findings;
}

function durationRules(fields: Fields): Finding[] {
  const findings: Finding[] = [];
  const order = (smaller: [string, string], larger: [string, string], prefix: string): void => {
    const [low, high] = [
      fields.durationMs(`${prefix}.${smaller[0]}`, smaller[1]),
      fields.durationMs(`${prefix}.${larger[0]}`, larger[1]),
    ];
    if (low > high) {
      const [small, large] = [smaller, larger].map(([key, fallback]) => {
        return `${key} (${fields.text(`${prefix}.${key}`, fallback)})`;
      });
      const at = fields.value(`${prefix}.${larger[0]}`) === undefined ? smaller[0] : larger[0];
      findings.push(errorAtValue(pathOf(`${prefix}.${at}`), `${small} must not be longer than ${large}`));
    }
  };
  order(['expressionTimeout', '100ms'], ['batchTimeout', '1s'], 'endpointSyncer.sandbox');
  order(['renewDeadline', '10s'], ['leaseDuration', '15s'], 'endpointSyncer.leaderElection');
  order(['retryPeriod', '2s'], ['renewDeadline', '10s'], 'endpointSyncer.leaderElection');
  order(['default', '24h'], ['max', '168h'], 'managementApi.tokenTtl');
  return findings;
}
