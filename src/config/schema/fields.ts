/** Reads single fields of a configuration that may be invalid elsewhere. */

import { type JsonObject, type JsonValue, isJsonObject, valueAt } from '../../base/json.ts';
import { parseDuration } from '../units.ts';
import type { ConfigPath } from '../finding.ts';

/** The default of a field, if it has one. */
export type DefaultOf = (path: ConfigPath) => JsonValue | undefined;

/** Typed access to the file's content. A value of another type counts as absent; the schema reports it. */
export class Fields {
  readonly #root: JsonObject;
  readonly #defaultOf: DefaultOf;

  constructor(root: JsonObject, defaultOf: DefaultOf = () => undefined) {
    this.#root = root;
    this.#defaultOf = defaultOf;
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

  /** With the default where the file says nothing. */
  textOrDefault(dotted: string): string {
    const fallback = this.#defaultOf(pathOf(dotted));
    return this.text(dotted, typeof fallback === 'string' ? fallback : '');
  }

  /** NaN when the text is not a duration. */
  durationMs(dotted: string): number {
    return parseDuration(this.textOrDefault(dotted)) ?? Number.NaN;
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
