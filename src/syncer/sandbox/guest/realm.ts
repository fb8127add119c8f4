/** Sets up the realm inside the isolate: keeps the functions it needs, hardens the rest, and returns the functions that the child calls.
 * Nothing here is visible to an expression. Runs inside the isolate: only imports of types and of files beside it.
 */

import type { RealmSettings } from '../protocol.ts';
import { createBase64, addMethods, byCodePoint, createDate, createVirtualToHostDNS } from './globals.ts';
import { BatchEvaluator, freezeDeep, type ProgramFunction } from './evaluator.ts';
import { hideStacks } from './errors.ts';
import { hardenRealm } from './harden.ts';

/** Functions with text input and output. Only the child's own code has references to them. */
export interface Realm {
  define(id: number, program: ProgramFunction | undefined, problem: string): void;
  forget(id: number): void;
  load(batch: string): void;
  /** Evaluates up to `matchesMax` matches of the batch, until the limit of time or output size is reached. */
  advance(matchesMax: number): string;
  collect(): void;
}

export function installRealm(settingsText: string): Realm {
  const { vcluster, names, shareMs, collectorName } = JSON.parse(settingsText) as RealmSettings;
  const collect = Reflect.get(globalThis, collectorName) as () => void; // the flag --expose-gc-as put it there
  const { now } = Date;
  freezeDeep(vcluster);
  const evaluator = new BatchEvaluator({ now, vcluster, shareMs, places: hideStacks() });
  const base64 = createBase64();
  Object.defineProperty(globalThis, 'Date', { value: createDate() });
  addMethods(String.prototype, byCodePoint);
  hardenRealm({ ...base64, virtualToHostDNS: createVirtualToHostDNS(names) });
  return {
    define: (id, program, problem) => evaluator.define(id, { program, problem }),
    forget: (id) => evaluator.forget(id),
    load: (batch) => evaluator.load(batch),
    advance: (matchesMax) => evaluator.advance(matchesMax),
    collect: () => collect(),
  };
}
