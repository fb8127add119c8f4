/** The resource of a kind where no API server is asked. The plural is guessed: that of an enabled custom resource, else the English one, which is right for nearly all kinds. */

import { apiVersionOf, groupOf, NAMESPACES, type Resource } from '../../kube/object.ts';
import { SYNCABLE_RESOURCES } from './synced-kinds.ts';

/** `PLURAL.GROUP`, as in `sync.toHost.customResources`. */
interface EnabledSettings {
  readonly enabledCustomResources: ReadonlySet<string>;
}

export function guessedResource(
  apiVersion: string,
  kind: string,
  { sync }: { readonly sync: EnabledSettings },
): Resource {
  const known = [...SYNCABLE_RESOURCES, NAMESPACES].find(
    (one) => one.kind === kind && apiVersionOf(one) === apiVersion,
  );
  if (known !== undefined) return known;
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  const plural = enabledPlural(sync, group, kind) ?? pluralOf(kind);
  return { group, version, kind, plural, isNamespaced: true };
}

export function isEnabledCustomResource(sync: EnabledSettings, apiVersion: string, kind: string): boolean {
  const group = groupOf(apiVersion);
  return group !== '' && enabledPlural(sync, group, kind) !== undefined;
}

function enabledPlural(
  { enabledCustomResources }: EnabledSettings,
  group: string,
  kind: string,
): string | undefined {
  const singular = kind.toLowerCase();
  return [pluralOf(kind), singular, `${singular}s`, `${singular}es`].find((plural) =>
    enabledCustomResources.has(`${plural}.${group}`),
  );
}

export function pluralOf(kind: string): string {
  const word = kind.toLowerCase();
  const own = SYNCABLE_RESOURCES.find((resource) => resource.kind.toLowerCase() === word);
  if (own !== undefined) return own.plural;
  if (/(s|x|ch)$/.test(word)) return `${word}es`;
  return word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`;
}
