/** The daemon's record of a program: the part of objects that it reads, its cached results and its quarantine. */

import type { Clock } from '../../base/clock.ts';
import { isJsonObject, ownValue, setOwn, type JsonObject } from '../../base/json.ts';
import { isDeterministic, type Memo, type ProgramMemo } from './memo.ts';
import type { ProgramMessage } from './protocol.ts';
import { Quarantine } from './quarantine.ts';
import type { EvaluateError, ObjectContext, ObjectIdentity, Program } from './types.ts';

export const NO_OBJECTS: ObjectContext = { hostObject: null, virtualObject: null };

export class ProgramEntry {
  readonly program: Program;
  readonly message: ProgramMessage;
  readonly quarantine: Quarantine;
  /** Undefined: results are not cached. */
  readonly memo: ProgramMemo | undefined;
  /** It reads only the configuration, so one evaluation serves all matches. */
  readonly isConstant: boolean;
  readonly #readsObjects: boolean;

  constructor(program: Program, memo: Memo | undefined, clock: Clock) {
    const { id, source, reads } = program;
    this.program = program;
    this.message = { id, source };
    this.quarantine = new Quarantine(clock);
    this.memo = memo?.open(reads);
    this.#readsObjects = reads.hostObject.length > 0 || reads.virtualObject.length > 0;
    this.isConstant = !reads.value && !reads.path && !this.#readsObjects;
  }

  /** The part of the context that is sent, and that is part of the cache key; null if an object does not exist or is not read. */
  readObjects({ hostObject, virtualObject }: ObjectContext): ObjectContext {
    if (!this.#readsObjects) return NO_OBJECTS;
    const { reads } = this.program;
    return {
      hostObject: prune(hostObject, reads.hostObject),
      virtualObject: prune(virtualObject, reads.virtualObject),
    };
  }

  /** An error thrown by the expression counts as success for the quarantine. */
  recordOutcome(object: ObjectIdentity, errors: ReadonlyMap<number, EvaluateError> | undefined): void {
    for (const error of errors?.values() ?? []) if (!isDeterministic(error)) return;
    this.quarantine.recordSuccess(object);
  }
}

type Path = readonly string[];

/** The object with only the values at these paths. Lists are kept as a whole, because their members such as `length` cannot be extracted. */
function prune(object: JsonObject | null, paths: readonly Path[]): JsonObject | null {
  if (object === null || paths.length === 0) return null;
  if (paths.some((path) => path.length === 0)) return object;
  const part: JsonObject = {};
  for (const [key, below] of byFirstKey(paths)) {
    const value = ownValue(object, key);
    if (value === undefined) continue;
    setOwn(part, key, isJsonObject(value) ? prune(value, below) : value);
  }
  return part;
}

function byFirstKey(paths: readonly Path[]): Map<string, Path[]> {
  const tree = new Map<string, Path[]>();
  for (const [key = '', ...rest] of paths) {
    const known = tree.get(key);
    if (known === undefined) tree.set(key, [rest]);
    else known.push(rest);
  }
  return tree;
}
