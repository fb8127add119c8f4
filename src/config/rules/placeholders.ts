/** Warnings about values that were copied from an example and not replaced. */

import { isJsonObject, type JsonValue } from '../../base/json.ts';
import { type Finding, warningAtValue } from '../finding.ts';
import type { Fields } from '../schema/fields.ts';
import type { ConfigPath } from '../source/path.ts';

const PLACEHOLDERS: readonly (readonly [pattern: RegExp, message: string])[] = [
  [/^\$\{.*\}$|\$\{[A-Za-z_]\w*\}/, 'variables are not expanded in this file'],
  [/^<.*>$|(?:^|\/)path\/to\/|^change-?me$|^your-|^…$|^\.\.\.$/i, 'this looks like a placeholder'],
  // As this documentation writes names to be replaced, such as vc-NAME.
  [/^(?:vc-)?(?:NAME|NAMESPACE|CONTEXT|VCLUSTER|HOST|FILE)$/, 'this looks like a placeholder'],
];

export function placeholderWarnings(own: Fields): Finding[] {
  return ['endpointSyncer', 'managementApi'].flatMap((section) => below(own.object(section), [section]));
}

function below(value: JsonValue, path: ConfigPath): Finding[] {
  if (isJsonObject(value)) {
    return Object.entries(value).flatMap(([key, member]) => below(member, [...path, key]));
  }
  if (typeof value !== 'string') return [];
  const found = PLACEHOLDERS.find(([pattern]) => pattern.test(value));
  return found === undefined ? [] : [warningAtValue(path, `${found[1]}: ${value}`)];
}
