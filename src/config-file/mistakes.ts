/** Valid values that are most likely mistakes, in whatever field. */

import { isJsonObject, type JsonValue } from '../base/json.ts';
import { pathOf, warningAtValue, type ConfigPath, type Fields, type Finding } from './finding.ts';

/** `names`: of fields with the path of a file that has to be there. */
export function missingFiles(
  fields: Fields,
  names: readonly string[],
  fileExists: (path: string) => boolean,
): Finding[] {
  return names
    .filter((name) => fields.text(name) !== '' && !fileExists(fields.text(name)))
    .map((name) => {
      const file = fields.text(name);
      const hint = file.includes('/~/') ? ': ~ is not expanded, write the whole path' : '';
      return warningAtValue(pathOf(name), `there is no file ${file}${hint}`);
    });
}

const PLACEHOLDERS: readonly (readonly [pattern: RegExp, message: string])[] = [
  [/^\$\{.*\}$|\$\{[A-Za-z_]\w*\}/, 'variables are not expanded in this file'],
  [/^<.*>$|(?:^|\/)path\/to\/|^change-?me$|^your-|^…$|^\.\.\.$/i, 'this looks like a placeholder'],
  // As this documentation writes names to be replaced, such as vc-NAME.
  [/^(?:vc-)?(?:NAME|NAMESPACE|CONTEXT|VCLUSTER|HOST|FILE)$/, 'this looks like a placeholder'],
];

export function placeholderWarnings(own: Fields, section: string): Finding[] {
  return placeholdersIn(own.object(section), [section]);
}

function placeholdersIn(value: JsonValue, path: ConfigPath): Finding[] {
  if (isJsonObject(value)) {
    return Object.entries(value).flatMap(([key, member]) => placeholdersIn(member, [...path, key]));
  }
  if (typeof value !== 'string') return [];
  const found = PLACEHOLDERS.find(([pattern]) => pattern.test(value));
  return found === undefined ? [] : [warningAtValue(path, `${found[1]}: ${value}`)];
}
