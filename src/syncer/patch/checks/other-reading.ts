/** Warns about a path that `jsonpath-plus`, a library that many tools use, parses differently. */

import { createRequire } from 'node:module';
import type * as JsonPathPlus from 'jsonpath-plus';
import type { Segment } from '../paths/path-syntax.ts';

/** Names, indices and wildcards joined by dots mean the same in every notation. */
const PLAIN = /^(?:[\w-]|\[(?:\d+|\*)\]|\.(?=[\w*])|\*)*$/;
/** vCluster's notation that jsonpath-plus does not support: quoted names without brackets, and escapes. */
const VCLUSTER_ONLY = /(?:^|\.)"|\\/;

export function otherReading(
  text: string,
  segments: readonly Segment[],
): { readonly message: string; readonly offset: number } | undefined {
  const path = text
    .trim()
    .replace(/^\$?\.?/, '')
    .replace(/\.$/, '');
  if (PLAIN.test(path) || VCLUSTER_ONLY.test(path)) return undefined;
  const [, ...other] = tokenizer()(path.startsWith('[') ? `$${path}` : `$.${path}`);
  const own = segments.map(tokenOf);
  const at = own.findIndex((token, i) => token !== other[i]);
  if (at < 0 && own.length === other.length) return undefined;
  const key = JSON.stringify(own[at] ?? own.at(-1) ?? '');
  const reading = other.map((token) => JSON.stringify(token)).join(', ');
  return {
    message: `jsonpath-plus reads this path as ${reading}; here the key is ${key}`,
    offset: Math.max(0, text.indexOf(own[at] ?? '')),
  };
}

/** Loaded on first use, because it takes 5 MiB. */
function tokenizer(): (path: string) => string[] {
  const require = createRequire(import.meta.url);
  const { JSONPath } = require('jsonpath-plus') as typeof JsonPathPlus; // the package that its type was taken from
  return (path) => JSONPath.toPathArray(path);
}

function tokenOf(segment: Segment): string {
  switch (segment.kind) {
    case 'key':
      return segment.key;
    case 'index':
      return String(segment.index);
    case 'wildcard':
      return '*';
    default:
      return segment satisfies never;
  }
}
