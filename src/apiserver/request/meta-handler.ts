/** Non-resource requests: health, version, discovery, OpenAPI. */

import { jsonResponse, textResponse, type ApiResponse, negotiate, type OfferedForm } from './api-response.ts';
import { aggregated, coreVersions, groupDocument, groupList, resourceList } from '../openapi/discovery.ts';
import { openApiDocument, openApiIndex, type OpenApiDocument } from '../openapi/openapi.ts';
import type { DefinitionTable } from '../objects/resource-definition.ts';
import { methodNotAllowed } from '../status.ts';

export interface MetaRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

export interface ServerVersion {
  readonly major: string;
  readonly minor: string;
  /** `v1.36.0+embedded` */
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
        return jsonResponse(200, this.#versionDocument());
      case '/api':
      case '/apis':
        return this.#roots(path === '/api', request.accept);
      case '/openapi/v3':
        return jsonResponse(200, openApiIndex(this.#openApi()));
      case '/openapi/v2':
        return openApiV2(this.#version.gitVersion, request.accept);
      default:
        return path.startsWith('/openapi/v3/')
          ? this.#openApiResponse(path, request.ifNoneMatch)
          : this.#groupResponse(path);
    }
  }

  #versionDocument(): Record<string, string> {
    const { major, minor, gitVersion } = this.#version;
    return {
      major,
      minor,
      gitVersion,
      gitCommit: '',
      gitTreeState: '',
      buildDate: '1970-01-01T00:00:00Z',
      goVersion: '',
      compiler: '',
      platform: `${process.platform}/${process.arch}`,
    };
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

/** Clients also accept `v2@v1.0`, which Go's parser of media types rejects in a response. */
const PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/**
 * `/openapi/v2` without definitions. Kinds are described in `/openapi/v3`, but kubectl validates a kind that is not there, such as `List` or
 * an unknown apiVersion, against this document, and fails with a misleading message without it. A kind without a definition passes, and the
 * server reports the error. Throws a 406 `StatusError` for any other form than protobuf, JSON and YAML.
 */
export function openApiV2(version: string, accept: string | undefined): ApiResponse {
  if (!accept?.replace('v2@v1', 'v2.v1').includes(PROTOBUF)) {
    const info = { title: 'Kubernetes', version };
    return jsonResponse(200, { swagger: '2.0', info, paths: {} }, negotiate(accept));
  }
  const info = stringField(1, 'Kubernetes') + stringField(2, version);
  const body = stringField(1, '2.0') + stringField(2, info) + stringField(8, '');
  return { code: 200, headers: { 'content-type': PROTOBUF, vary: 'Accept' }, body };
}

/** A protobuf field of fewer than 128 ASCII characters, so that each byte is a character. */
function stringField(number: number, text: string): string {
  return String.fromCharCode((number << 3) | 2, text.length) + text;
}
