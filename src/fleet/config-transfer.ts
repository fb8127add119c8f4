/** What is read of the texts of a member, as plain text: in this form it passes from the thread that reads them. Bounded, whatever the texts contain. */

import {
  isJsonObject,
  jsonEquals,
  parseJson,
  setOwn,
  type JsonObject,
  type JsonValue,
} from '../base/json.ts';
import type { ConfigProblem } from '../base/errors.ts';
import type { Config } from '../syncer/config/config.ts';
import { SYNCED_KEYS } from '../syncer/kinds/synced-kinds.ts';
import { mergeConfig } from '../config-file/merge.ts';
import { vclusterDefaults } from '../shared-config/vcluster-values.ts';
import type { MemberConfig } from './member-config.ts';

/** Of all values of one vCluster, in which aliases may repeat one text many times. */
const CHARS_MAX = 512 * 1024;
const PROBLEMS_MAX = 20;
const PROBLEM_CHARS_MAX = 1024;
const REASON_CHARS_MAX = 4096;

/** Vcluster's defaults, which most of the values are, are not in it: {@link decodeMemberConfig} shares them between members. */
export function encodeMemberConfig(read: MemberConfig): string {
  if (read.config === undefined) return encoded({ invalid: shortened(read.invalid, REASON_CHARS_MAX) });
  const { config, warnings } = read;
  const values = withoutDefaults(config.vclusterValues, vclusterDefaults());
  if (isLongerThan([values, ...SYNCED_KEYS.map((key) => config.sync[key].patches)]))
    return encoded({
      invalid: `the values have more than ${CHARS_MAX} characters after aliases are expanded: shorten them`,
    });
  const { enabledResources, enabledCustomResources } = config.sync;
  return encoded({
    config: {
      ...config,
      vclusterValues: values,
      sync: {
        ...config.sync,
        enabledResources: [...enabledResources],
        enabledCustomResources: [...enabledCustomResources],
      },
    },
    warnings: bounded(warnings),
  });
}

export function decodeMemberConfig(text: string): MemberConfig {
  const read = parseJson(text) as unknown as Encoded; // what the function above writes
  if ('invalid' in read) return { config: undefined, invalid: read.invalid };
  const { sync, vclusterValues, ...config } = read.config;
  const { syncedByVcluster, enabledResources, enabledCustomResources, ...kinds } = sync;
  return {
    config: {
      ...config,
      vclusterValues: mergeConfig(vclusterDefaults(), vclusterValues),
      sync: {
        ...kinds,
        syncedByVcluster,
        enabledResources: new Set(enabledResources),
        enabledCustomResources: new Set(enabledCustomResources),
      },
    },
    warnings: read.warnings,
  };
}

type EncodedSync = Omit<Config['sync'], 'enabledResources' | 'enabledCustomResources'> & {
  readonly enabledResources: readonly string[];
  readonly enabledCustomResources: readonly string[];
};

type Encoded =
  | { readonly invalid: string }
  | {
      readonly config: Omit<Config, 'sync'> & { readonly sync: EncodedSync };
      readonly warnings: readonly ConfigProblem[];
    };

function encoded(read: Encoded): string {
  return JSON.stringify(read);
}

/** `values` are a merge over `defaults`: a repetition of it results in the same. */
function withoutDefaults(values: JsonObject, defaults: JsonObject): JsonObject {
  const own: JsonObject = {};
  for (const [key, value] of Object.entries(values)) {
    const below = Object.hasOwn(defaults, key) ? defaults[key] : undefined;
    if (isJsonObject(value) && isJsonObject(below)) {
      const rest = value === below ? {} : withoutDefaults(value, below);
      if (Object.keys(rest).length > 0) setOwn(own, key, rest);
    } else if (!jsonEquals(value, below)) setOwn(own, key, value);
  }
  return own;
}

/** Not recursive, and no text of it is made: aliases make a short text arbitrarily long. */
function isLongerThan(value: unknown): boolean {
  let chars = 0;
  const left: unknown[] = [value];
  while (left.length > 0 && chars <= CHARS_MAX) {
    const one = left.pop();
    chars += typeof one === 'string' ? one.length : 1;
    if (typeof one !== 'object' || one === null) continue;
    for (const [key, member] of Object.entries(one)) {
      chars += Array.isArray(one) ? 1 : key.length;
      left.push(member as JsonValue);
    }
  }
  return chars > CHARS_MAX;
}

/** Without excerpts, which only commands show. */
function bounded(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  const first = problems
    .slice(0, PROBLEMS_MAX)
    .map((one) => ({ ...one, message: shortened(one.message, PROBLEM_CHARS_MAX), excerpt: '' }));
  const [last] = first.slice(-1);
  const more = problems.length - first.length;
  return last === undefined || more === 0
    ? first
    : [...first, { ...last, message: `${more} more warnings about these values are left out` }];
}

function shortened(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax)}… (${text.length - charsMax} more)`;
}
