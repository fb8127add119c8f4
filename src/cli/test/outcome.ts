/** The outcome of a case in one direction, in the format of the expectations in test files. */

import { PatchError, messageOf } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { asJson, parseKey } from '../../kube/object.ts';
import type { Rendered } from '../offline/offline-sync.ts';
import { withoutBookkeeping } from '../objects/without-bookkeeping.ts';
import type { Expectation } from './test-file.ts';

export type Outcome = Readonly<Record<keyof Expectation, readonly JsonObject[]>>;

/** `side`: the cluster to which the objects were rendered. */
export function outcomeOf(rendered: readonly Rendered[], side: 'host' | 'virtual'): Outcome {
  const outcome = { host: [], virtual: [], skipped: [], errors: [] } as Record<
    keyof Expectation,
    JsonObject[]
  >;
  const other = side === 'host' ? 'virtual' : 'host';
  for (const one of rendered) {
    switch (one.kind) {
      case 'object':
        outcome[side].push(asJson(withoutBookkeeping(one.object)));
        break;
      case 'elsewhere':
        outcome[other].push(asJson(withoutBookkeeping(one.object)));
        break;
      case 'skipped':
      case 'refused':
        outcome.skipped.push({ kind: one.of, ...parseKey(one.key), reason: one.reason });
        break;
      case 'failed':
        outcome.errors.push({ object: { kind: one.of, ...parseKey(one.key) }, ...errorEntry(one.error) });
        break;
      default:
        one satisfies never;
    }
  }
  return outcome;
}

/** A failure as an entry of `errors`, without its object. */
export function errorEntry(error: unknown): JsonObject {
  const contains = messageOf(error);
  if (!(error instanceof PatchError)) return { contains };
  return { patch: error.index, path: error.path, kind: error.kind, contains };
}
