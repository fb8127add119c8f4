/** Reads single fields of a configuration that may be invalid elsewhere. */

import { type JsonObject, type JsonValue, isJsonObject, valueAt } from '../../base/json.ts';
import { parseDuration } from '../units.ts';
import type { ConfigPath } from '../finding.ts';

/** Typed access to the file's content. A value of another type counts as absent; the schema reports it. */
export class Fields {
  readonly #root: JsonObject;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  root(): JsonObject {
    return this.#root;
  }

  /** `dotted` has plain keys only. */
  value(dotted: string): JsonValue | undefined {
    return valueAt(this.#root, dotted.split('.'));
  }

  text(dotted: string, fallback = ''): string {
    const value = this.value(dotted);
    return typeof value === 'string' ? value : fallback;
  }

  isOn(dotted: string, fallback = false): boolean {
    const value = this.value(dotted);
    return typeof value === 'boolean' ? value : fallback;
  }

  object(dotted: string): JsonObject {
    const value = this.value(dotted);
    return isJsonObject(value) ? value : {};
  }

  /** NaN when the text is not a duration. */
  durationMs(dotted: string, fallback: string): number {
    return parseDuration(this.text(dotted, fallback)) ?? Number.NaN;
  }
}

export function pathOf(dotted: string): ConfigPath {
  return dotted.split('.');
}

/** This program copies Services, so their patches are its own. */
export function syncsServices(fields: Fields): boolean {
  const services = 'endpointSyncer.services';
  return [fields.text(services), fields.text(`${services}.mode`)].includes('sync');
}

/** More than one host namespace receives objects. */
export function isMultiNamespace(fields: Fields): boolean {
  return (
    fields.isOn('sync.toHost.namespaces.enabled') || fields.isOn('experimental.multiNamespaceMode.enabled')
  );
}
