/** Non-resource requests: health, version, discovery, OpenAPI. */

import { createHash } from 'node:crypto';
import { jsonResponse, textResponse, type ApiResponse, negotiate, type OfferedForm } from './api-response.ts';
import { openApiDocument, openApiIndex, type OpenApiDocument } from './openapi.ts';
import { openApiV2 } from './openapi-v2.ts';
import type { DefinitionTable, ResourceDefinition } from '../objects/resource-definition.ts';
import { methodNotAllowed } from '../status.ts';
import type { JsonObject } from '../../base/json.ts';

export interface MetaRequest {
  readonly method: string;
  readonly path: string;
  readonly accept: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

export interface ServerVersion {
  readonly major: string;
  readonly minor: string;
  /** `v1.37.0+embedded` */
  readonly gitVersion: string;
}

const DISCOVERY: OfferedForm = {
  as: 'APIGroupDiscoveryList',
  group: 'apidiscovery.k8s.io',
  versions: ['v2', 'v2beta1'],
};

export class MetaHandler {
  readonly #table: DefinitionTable;
  readonly #version: ServerVersion;
  /** Created by the first request: most servers never get one. */
  #documents: readonly OpenApiDocument[] | undefined;
  /** `host:port`, set when the server listens. */
  address = '';

  constructor(table: DefinitionTable, version: ServerVersion) {
    this.#table = table;
    this.#version = version;
  }

  /** Undefined for a path that is not served. Throws `StatusError`. */
  handle(request: MetaRequest): ApiResponse | undefined {
    const path = request.path.replace(/(.)\/$/, '$1');
    const response = this.#respond(path, request);
    if (response && request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed();
    return response;
  }

  #respond(path: string, request: MetaRequest): ApiResponse | undefined {
    switch (path) {
      case '/healthz':
      case '/livez':
      case '/readyz':
        return textResponse(200, 'ok');
      case '/version':
        return this.version();
      case '/api':
      case '/apis':
        return this.#roots(path === '/api', request.accept);
      case '/openapi/v3':
        return jsonResponse(200, openApiIndex(this.#openApi()));
      case '/openapi/v2':
        return openApiV2(this.#table, this.#version.gitVersion, request.accept);
      default:
        return path.startsWith('/openapi/v3/')
          ? this.#openApiResponse(path, request.ifNoneMatch)
          : this.#groupResponse(path);
    }
  }

  version(): ApiResponse {
    const { major, minor, gitVersion } = this.#version;
    return jsonResponse(200, {
      major,
      minor,
      gitVersion,
      gitCommit: '',
      gitTreeState: '',
      buildDate: '1970-01-01T00:00:00Z',
      goVersion: '',
      compiler: '',
      platform: `${process.platform}/${process.arch}`,
    });
  }

  #roots(isCore: boolean, accept: string | undefined): ApiResponse | undefined {
    const form = negotiate(accept, [DISCOVERY]);
    if (form.as !== '') {
      const contentType = `application/json;g=apidiscovery.k8s.io;v=${form.version};as=APIGroupDiscoveryList`;
      const response = jsonResponse(200, aggregated(this.#table, form.version, isCore));
      return { ...response, headers: { 'content-type': contentType, vary: 'Accept' } };
    }
    const document = isCore ? coreVersions(this.#table, this.address) : groupList(this.#table);
    return document && jsonResponse(200, document, form);
  }

  #groupResponse(path: string): ApiResponse | undefined {
    const [, root = '', group = '', version = '', ...more] = path.split('/');
    if (more.length > 0) return undefined;
    if (root === 'api') {
      const list = version === '' ? resourceList(this.#table, '', group) : undefined;
      return list && jsonResponse(200, list);
    }
    if (root !== 'apis') return undefined;
    const document =
      version === '' ? groupDocument(this.#table, group) : resourceList(this.#table, group, version);
    return document && jsonResponse(200, document);
  }

  #openApi(): readonly OpenApiDocument[] {
    this.#documents ??= [...this.#table.groups].flatMap(([group, versions]) =>
      versions.map((version) => openApiDocument(this.#table, group, version, this.#version.gitVersion)),
    );
    return this.#documents;
  }

  #openApiResponse(path: string, ifNoneMatch: string | undefined): ApiResponse | undefined {
    const found = this.#openApi().find((document) => `/openapi/v3/${document.path}` === path);
    if (!found) return undefined;
    const etag = `"${found.hash}"`;
    const headers = { 'content-type': 'application/json', etag, vary: 'Accept' };
    return ifNoneMatch === etag ? { code: 304, headers, body: '' } : { code: 200, headers, body: found.text };
  }
}

// Discovery documents: the groups, versions and resources of a server, in the plain and in the aggregated form.

/**
 * `address`: `host:port` of this server. Undefined for a server without core kinds: as in an aggregated API server, the plain form of `/api`
 * does not exist then.
 */
function coreVersions(table: DefinitionTable, address: string): JsonObject | undefined {
  const versions = table.groups.get('')?.filter((version) => table.of('', version).length > 0) ?? [];
  if (versions.length === 0) return undefined;
  const addresses = [{ clientCIDR: '0.0.0.0/0', serverAddress: address }];
  return { kind: 'APIVersions', versions, serverAddressByClientCIDRs: addresses };
}

function groupList(table: DefinitionTable): JsonObject {
  const groups = [...table.groups.keys()].filter((group) => group !== '');
  return {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: groups.map((name) => groupBody(table, name)),
  };
}

function groupDocument(table: DefinitionTable, name: string): JsonObject | undefined {
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

function resourceList(table: DefinitionTable, group: string, version: string): JsonObject | undefined {
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
function aggregated(table: DefinitionTable, version: string, isCore: boolean): JsonObject {
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
