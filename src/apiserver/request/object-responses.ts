/** Responses with objects and lists, in the form that the client requested. */

import type { Clock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import { apiVersionOf } from '../../kube/object.ts';
import type { StoredEntry } from '../storage/store.ts';
import {
  jsonResponse,
  type ApiResponse,
  metaVersion,
  type ResponseForm,
  type OfferedForm,
} from './api-response.ts';
import { mapInTurns } from '../objects/in-turns.ts';
import type { ObjectPage } from '../objects/list-objects.ts';
import { overlaid, presented, type ObjectViews } from '../objects/object-view.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { includeObject, partialMetadata, rowOf, tableOf, type TableOptions } from '../objects/table.ts';

/** The kind and the form of a response. */
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

/** Forms of one object and of watch events. */
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

  /** A stored object. */
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
