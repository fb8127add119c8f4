/** Discovery documents: the groups, versions and resources of a server, in the plain and in the aggregated form. */

import { createHash } from 'node:crypto';
import type { JsonArray, JsonObject } from '../../base/json.ts';
import type { ResourceDefinition, DefinitionTable } from '../objects/resource-definition.ts';

/**
 * `address`: `host:port` of this server. Undefined for a server without core kinds: as in an aggregated API server, the plain form of `/api`
 * does not exist then.
 */
export function coreVersions(table: DefinitionTable, address: string): JsonObject | undefined {
  const versions = table.groups.get('')?.filter((version) => table.of('', version).length > 0) ?? [];
  if (versions.length === 0) return undefined;
  return { kind: 'APIVersions', versions, serverAddressByClientCIDRs: addresses(address) };
}

export function groupList(table: DefinitionTable): JsonObject {
  const groups = [...table.groups.keys()].filter((group) => group !== '');
  return {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: groups.map((name) => groupBody(table, name)),
  };
}

export function groupDocument(table: DefinitionTable, name: string): JsonObject | undefined {
  if (name === '' || !table.groups.has(name)) return undefined;
  return { kind: 'APIGroup', apiVersion: 'v1', ...groupBody(table, name) };
}

function groupBody(table: DefinitionTable, name: string): JsonObject {
  const versions = (table.groups.get(name) ?? []).map((version) => ({
    groupVersion: `${name}/${version}`,
    version,
  }));
  return { name, versions, preferredVersion: versions[0] ?? {} };
}

function addresses(serverAddress: string): JsonArray {
  return [{ clientCIDR: '0.0.0.0/0', serverAddress }];
}

export function resourceList(table: DefinitionTable, group: string, version: string): JsonObject | undefined {
  if (!table.groups.get(group)?.includes(version)) return undefined;
  return {
    kind: 'APIResourceList',
    ...(group === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: group === '' ? version : `${group}/${version}`,
    resources: table.of(group, version).flatMap(resourceEntries),
  };
}

function resourceEntries(definition: ResourceDefinition): JsonObject[] {
  const { plural, singular, isNamespaced, kind, verbs, shortNames, categories } = definition;
  const entry: JsonObject = {
    name: plural,
    singularName: singular,
    namespaced: isNamespaced,
    kind,
    verbs: [...verbs],
  };
  if (shortNames.length > 0) entry['shortNames'] = [...shortNames];
  if (categories.length > 0) entry['categories'] = [...categories];
  if (!definition.respond) entry['storageVersionHash'] = storageVersionHash(definition);
  const parts = definition.subresources.map((part) => ({
    name: `${plural}/${part.name}`,
    singularName: '',
    namespaced: isNamespaced,
    kind: part.action?.kind ?? kind,
    verbs: [...part.verbs],
  }));
  return [entry, ...parts];
}

function storageVersionHash({ group, version, kind }: ResourceDefinition): string {
  const bytes = createHash('sha256').update(`${group}/${version}/${kind}`).digest();
  return bytes.subarray(0, 8).toString('base64');
}

/** The aggregated form: `isCore` for `/api`, else for `/apis`. */
export function aggregated(table: DefinitionTable, version: string, isCore: boolean): JsonObject {
  const groups = [...table.groups].filter(([group]) => (group === '') === isCore);
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map(([group, versions]) => ({
      metadata: group === '' ? {} : { name: group },
      versions: versions.map((name) => ({
        version: name,
        resources: table.of(group, name).map(aggregatedResource),
        freshness: 'Current',
      })),
    })),
  };
}

function aggregatedResource(definition: ResourceDefinition): JsonObject {
  const responseKind = { group: '', version: '', kind: definition.kind };
  const entry: JsonObject = {
    resource: definition.plural,
    responseKind,
    scope: definition.isNamespaced ? 'Namespaced' : 'Cluster',
    singularResource: definition.singular,
    verbs: [...definition.verbs],
  };
  if (definition.shortNames.length > 0) entry['shortNames'] = [...definition.shortNames];
  if (definition.categories.length > 0) entry['categories'] = [...definition.categories];
  if (definition.subresources.length > 0) {
    entry['subresources'] = definition.subresources.map(({ name, verbs, action }) => ({
      subresource: name,
      responseKind: action ? { ...responseKind, kind: action.kind } : responseKind,
      verbs: [...verbs],
    }));
  }
  return entry;
}
