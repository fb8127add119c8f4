/** The response of a handler, before it becomes HTTP. */

import { writeYaml } from '../../base/yaml/write.ts';
import type { StatusError } from '../../kube/status-error.ts';
import { parseJson, type JsonValue, type JsonObject } from '../../base/json.ts';
import { WARNING_BYTES_MAX, YAML_BLOCK_CHARACTERS_MAX } from '../limits.ts';
import { notAcceptable } from '../status.ts';
import type { Clock } from '../../base/clock.ts';
import { apiVersionOf } from '../../kube/object.ts';
import type { StoredEntry } from '../storage/store.ts';
import { mapInTurns, type ObjectPage } from '../objects/list-objects.ts';
import {
  overlaid,
  presented,
  type ObjectViews,
  includeObject,
  partialMetadata,
  rowOf,
  tableOf,
  type TableOptions,
} from '../objects/object-view.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';

export interface ApiResponse {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
}

export function jsonResponse(code: number, body: JsonValue | string, form?: ResponseForm): ApiResponse {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  if (form?.format === 'yaml') {
    return { code, headers: { 'content-type': 'application/yaml' }, body: yamlText(text) };
  }
  return { code, headers: { 'content-type': 'application/json' }, body: text };
}

/** Long texts stay JSON, which is YAML in flow style: conversion to block style would block the event loop. */
function yamlText(json: string): string {
  if (json.length > YAML_BLOCK_CHARACTERS_MAX) return json;
  return writeYaml(parseJson(json), { isSorted: true });
}

export function textResponse(code: number, body: string): ApiResponse {
  return { code, headers: { 'content-type': 'text/plain; charset=utf-8' }, body };
}

export function statusResponse(error: StatusError): ApiResponse {
  const response = jsonResponse(error.code, JSON.stringify(error.status));
  if (error.retryAfterMs === undefined) return response;
  const retryAfter = String(Math.ceil(error.retryAfterMs / 1000));
  return { ...response, headers: { ...response.headers, 'retry-after': retryAfter } };
}

/** `Warning` headers, which kubectl prints. */
export function withWarnings(response: ApiResponse, warnings: readonly string[]): ApiResponse {
  if (warnings.length === 0) return response;
  const lines: string[] = [];
  let bytes = 0;
  for (const text of warnings) {
    const line = `299 - ${JSON.stringify(printable(text))}`;
    bytes += line.length;
    if (bytes > WARNING_BYTES_MAX) break;
    lines.push(line);
  }
  return { ...response, headers: { ...response.headers, warning: lines } };
}

/** Headers hold printable ASCII only. */
function printable(text: string): string {
  return text.slice(0, 1000).replaceAll(/[^\x20-\x7e]/g, '?');
}

export interface ResponseForm {
  readonly format: 'json' | 'yaml';
  /** `Table`, `PartialObjectMetadata`, `PartialObjectMetadataList`, `APIGroupDiscoveryList`, or `''` for the object itself. */
  readonly as: string;
  readonly version: string;
  readonly group: string;
}

export interface OfferedForm {
  readonly as: string;
  readonly group: string;
  readonly versions: readonly string[];
}

const PLAIN: ResponseForm = { format: 'json', as: '', version: '', group: '' };

const ACCEPTED = ['application/json', 'application/yaml'];

/** A watch is lines of JSON. Throws 406 when the client does not accept JSON. */
export function negotiateWatch(accept: string | undefined, offered: readonly OfferedForm[]): ResponseForm {
  const form = negotiate(accept, offered);
  if (form.format !== 'json') throw notAcceptable(['application/json;stream=watch']);
  return form;
}

/** `meta.k8s.io/v1`: the apiVersion of a form that is not the object itself. */
export function metaVersion({ group, version }: ResponseForm): string {
  return `${group}/${version}`;
}

/** The most preferred form of the header that is offered; throws 406 when there is none. Without a header: JSON. */
export function negotiate(accept: string | undefined, offered: readonly OfferedForm[] = []): ResponseForm {
  if (accept === undefined || accept.trim() === '') return PLAIN;
  for (const { type, parameters } of clausesOf(accept)) {
    const format = Object.hasOwn(FORMATS, type) ? FORMATS[type] : undefined;
    if (!format) continue;
    const as = parameters['as'] ?? '';
    const form = { format, as, version: parameters['v'] ?? '', group: parameters['g'] ?? '' };
    if (as === '') return form;
    const isOffered = offered.some(
      (offer) => offer.as === as && offer.group === form.group && offer.versions.includes(form.version),
    );
    if (isOffered) return form;
  }
  throw notAcceptable(ACCEPTED);
}

interface Clause {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
}

function clausesOf(accept: string): Clause[] {
  const clauses = accept.split(',').map((clause): Clause => {
    const [type = '', ...pairs] = clause.split(';').map((part) => part.trim());
    return {
      type,
      parameters: Object.fromEntries(pairs.map((part) => part.split('=', 2) as [string, string])),
    }; // two parts
  });
  return clauses.sort((a, b) => weightOf(b) - weightOf(a));
}

function weightOf({ parameters }: Clause): number {
  const weight = Number(parameters['q'] ?? 1);
  return Number.isNaN(weight) ? 1 : weight;
}

const FORMATS: Readonly<Record<string, ResponseForm['format']>> = {
  'application/json': 'json',
  'application/*': 'json',
  '*/*': 'json',
  'application/yaml': 'yaml',
};

export function plainHeaders(headers: ApiResponse['headers']): Record<string, string> {
  return headers as Record<string, string>; // Node accepts lists too
}

export interface Presentation {
  readonly definition: ResourceDefinition;
  readonly form: ResponseForm;
  readonly query: URLSearchParams;
}

/** A list in one form: its text is the head with one member that holds the items. */
interface ListForm {
  readonly head: JsonObject;
  readonly member: 'items' | 'rows';
  readonly itemText: (entry: StoredEntry) => string;
}

const META = 'meta.k8s.io';
const VERSIONS = ['v1', 'v1beta1'];
const TABLE: OfferedForm = { as: 'Table', group: META, versions: VERSIONS };

export const OBJECT_FORMS: readonly OfferedForm[] = [
  TABLE,
  { as: 'PartialObjectMetadata', group: META, versions: VERSIONS },
];
export const LIST_FORMS: readonly OfferedForm[] = [
  TABLE,
  { as: 'PartialObjectMetadataList', group: META, versions: VERSIONS },
];

export class ObjectResponses {
  readonly #views: ObjectViews;
  readonly #clock: Clock;

  constructor(views: ObjectViews, clock: Clock) {
    this.#views = views;
    this.#clock = clock;
  }

  entry(presentation: Presentation, entry: StoredEntry): ApiResponse {
    const { definition, form } = presentation;
    if (form.as === '') return jsonResponse(200, this.#views.text(definition, entry), form);
    return this.#respond(presentation, 200, this.#views.object(definition, entry));
  }

  /** An object in the shape of its kind. `resourceVersion` `''`: not stored. */
  object(
    presentation: Presentation,
    code: number,
    { object, resourceVersion }: { object: JsonObject; resourceVersion: string },
  ): ApiResponse {
    const { definition } = presentation;
    const value = overlaid(definition, object);
    return this.#respond(presentation, code, presented(definition, value, resourceVersion));
  }

  #respond(presentation: Presentation, code: number, object: ReturnType<typeof presented>): ApiResponse {
    const { definition, form } = presentation;
    switch (form.as) {
      case 'Table': {
        const options = this.#tableOptions(presentation, {
          resourceVersion: object.metadata.resourceVersion ?? '',
        });
        return jsonResponse(code, tableOf(definition, [object], options), form);
      }
      case 'PartialObjectMetadata':
        return jsonResponse(code, partialMetadata(object, metaVersion(form)), form);
      default:
        return jsonResponse(code, JSON.stringify(object), form);
    }
  }

  async list(presentation: Presentation, page: ObjectPage): Promise<ApiResponse> {
    const { form } = presentation;
    const metadata: JsonObject = { resourceVersion: String(page.revision) };
    if (page.continueToken !== '') metadata['continue'] = page.continueToken;
    if (page.remaining !== undefined) metadata['remainingItemCount'] = page.remaining;
    const list = this.#listForm(presentation, metadata);
    const texts = await mapInTurns(page.entries, list.itemText);
    return jsonResponse(
      200,
      `${JSON.stringify(list.head).slice(0, -1)},"${list.member}":[${texts.join(',')}]}`,
      form,
    );
  }

  #listForm(presentation: Presentation, metadata: JsonObject): ListForm {
    const { definition, form } = presentation;
    const views = this.#views;
    if (form.as === 'Table') {
      const options = this.#tableOptions(presentation, metadata);
      const { rows: _none, ...head } = tableOf(definition, [], options);
      const itemText = (entry: StoredEntry): string =>
        JSON.stringify(rowOf(definition, views.object(definition, entry), options));
      return { head, member: 'rows', itemText };
    }
    if (form.as === 'PartialObjectMetadataList') {
      const apiVersion = metaVersion(form);
      const itemText = (entry: StoredEntry): string =>
        JSON.stringify(partialMetadata(views.object(definition, entry), apiVersion));
      return { head: { kind: 'PartialObjectMetadataList', apiVersion, metadata }, member: 'items', itemText };
    }
    const head = { kind: `${definition.kind}List`, apiVersion: apiVersionOf(definition), metadata };
    return { head, member: 'items', itemText: (entry) => views.itemText(definition, entry) };
  }

  #tableOptions({ query, form }: Presentation, metadata: JsonObject): TableOptions {
    const nowMs = this.#clock.now();
    const apiVersion = metaVersion(form);
    return { includeObject: includeObject(query), nowMs, metadata, hasColumns: true, apiVersion };
  }
}
