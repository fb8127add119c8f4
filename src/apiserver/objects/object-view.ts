/** Converts between stored objects and objects as clients see them: with kind, apiVersion and resourceVersion, in the shape of the requested kind. */

import { type KubeObject, apiVersionOf } from '../../kube/object.ts';
import type { JsonObject } from '../../base/json.ts';
import type { StoredEntry } from '../storage/store.ts';
import type { ResourceDefinition } from './resource-definition.ts';
import { metadataOf } from '../metadata.ts';

/** Metadata fields before the resourceVersion, in the order of a kube-apiserver. */
const BEFORE_VERSION = ['name', 'generateName', 'namespace', 'selfLink', 'uid'];

/** The text of an entry, valid for one version of the overlay. */
interface Text {
  readonly version: string;
  readonly text: string;
}

export class ObjectViews {
  /** The JSON text of entries, shared by watchers and lists. */
  readonly #texts = new WeakMap<ResourceDefinition, WeakMap<StoredEntry, Text>>();

  object(definition: ResourceDefinition, entry: StoredEntry): KubeObject {
    return viewOf(definition, entry.value, String(entry.revision));
  }

  /** The object as JSON text, with kind and apiVersion. */
  text(definition: ResourceDefinition, entry: StoredEntry): string {
    let texts = this.#texts.get(definition);
    if (!texts) {
      texts = new WeakMap();
      this.#texts.set(definition, texts);
    }
    const version = definition.view?.overlay?.version(entry.value) ?? '';
    const known = texts.get(entry);
    if (known?.version === version) return known.text;
    const text = JSON.stringify(this.object(definition, entry));
    texts.set(entry, { version, text });
    return text;
  }

  /** The object as an item of a list; items of built-in kinds have neither kind nor apiVersion. */
  itemText(definition: ResourceDefinition, entry: StoredEntry): string {
    const text = this.text(definition, entry);
    if (definition.hasTypedItems) return text;
    const typed = JSON.stringify({ kind: definition.kind, apiVersion: apiVersionOf(definition) });
    return `{${text.slice(typed.length)}`;
  }
}

function viewOf(definition: ResourceDefinition, stored: JsonObject, resourceVersion: string): KubeObject {
  const value = definition.view ? definition.view.fromStorage(stored) : stored;
  return presented(definition, overlaid(definition, value), resourceVersion);
}

/** The object with the facts that are stored separately. */
export function overlaid(definition: ResourceDefinition, value: JsonObject): JsonObject {
  return definition.view?.overlay?.over(value) ?? value;
}

/** An object in the shape of its kind, as a client sees it. `resourceVersion` `''`: not stored. */
export function presented(
  definition: ResourceDefinition,
  value: JsonObject,
  resourceVersion: string,
): KubeObject {
  const { resourceVersion: _version, ...source } = metadataOf(value);
  const metadata: JsonObject = {};
  for (const field of BEFORE_VERSION) {
    if (source[field] !== undefined) metadata[field] = source[field];
  }
  if (resourceVersion !== '') metadata['resourceVersion'] = resourceVersion;
  return {
    kind: definition.kind,
    apiVersion: apiVersionOf(definition),
    ...value,
    metadata: { ...metadata, ...source } as KubeObject['metadata'], // every stored object has a name
  };
}

/** The object as it is stored. `stored` is the state that it replaces. */
export function storedForm(
  definition: ResourceDefinition,
  object: JsonObject,
  stored: JsonObject | undefined,
): JsonObject {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object;
  const { resourceVersion: _version, ...metadata } = metadataOf(object);
  const bare = { ...rest, metadata };
  return definition.view ? definition.view.toStorage(bare, stored) : bare;
}
