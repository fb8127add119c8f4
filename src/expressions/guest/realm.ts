/** Sets up the realm inside the isolate: keeps the functions it needs, hardens the rest, and returns the functions that the child calls.
 * Nothing here is visible to an expression. Runs inside the isolate: only imports of types and of files beside it. */

import type { JobMessage, RealmSettings } from '../protocol.ts';
import { createBase64, addMethods, byCodePoint, createDate, createVirtualToHostDNS } from './globals.ts';
import { hardenRealm } from './harden.ts';
import { hideStacks, ResultList, ResultProblem, type ErrorPlaces } from './results.ts';

/** Text in and out, so that one call into the isolate serves many matches. Only the child's own code has references to these functions. */
export interface Realm {
  define(id: number, program: ProgramFunction | undefined, problem: string): void;
  forget(id: number): void;
  load(batch: string): void;
  /** Returns after `matchesMax` matches, a limited time or output size, so that the daemon sees progress. The response starts with `.` when the
   * batch is finished, else with `+`. */
  advance(matchesMax: number): string;
  collect(): void;
}

/** A program's source, see `generateSource`. */
type ProgramFunction = (value: unknown, valueExists: boolean, context: unknown) => unknown;

interface ProgramRecord {
  readonly program: ProgramFunction | undefined;
  readonly problem: string;
}

/** Dependencies that the hardened realm does not provide. */
interface EvaluatorTools {
  readonly now: () => number;
  readonly vcluster: unknown;
  readonly shareMs: number;
  readonly places: ErrorPlaces;
}

export function installRealm(settingsText: string, collectorName: string): Realm {
  const { vcluster, names, shareMs } = JSON.parse(settingsText) as RealmSettings;
  const collect = Reflect.get(globalThis, collectorName) as () => void; // the flag --expose-gc-as put it there
  const { now } = Date;
  freezeDeep(vcluster);
  const evaluator = createEvaluator({ now, vcluster, shareMs, places: hideStacks() });
  const base64 = createBase64();
  Object.defineProperty(globalThis, 'Date', { value: createDate() });
  addMethods(String.prototype, byCodePoint);
  hardenRealm({ ...base64, virtualToHostDNS: createVirtualToHostDNS(names) });
  return { ...evaluator, collect: () => collect() };
}

const STRIDE_MAX = 32;
const OUTPUT_BYTES_MAX = 2 * 1024 * 1024;
const UNKNOWN: ProgramRecord = { program: undefined, problem: 'the program is unknown' };

function createEvaluator({ now, vcluster, shareMs, places }: EvaluatorTools): Omit<Realm, 'collect'> {
  const programs = new Map<number, ProgramRecord>();
  let jobs: readonly JobMessage[] = [];
  let [jobAt, matchAt] = [0, 0];
  let context: unknown;

  const contextOf = ({ hostObject, virtualObject, paths }: JobMessage): unknown => {
    // The program can keep a reference to them.
    freezeDeep(hostObject);
    freezeDeep(virtualObject);
    return Object.freeze({
      vcluster,
      hostObject: hostObject ?? null,
      virtualObject: virtualObject ?? null,
      path: paths?.[matchAt] ?? '',
    });
  };
  const evaluateNext = (job: JobMessage, results: ResultList): void => {
    const { values, missing } = job;
    if (matchAt === 0 || job.paths !== undefined) context = contextOf(job);
    const exists = missing === undefined || !missing.includes(matchAt);
    const value = exists ? (values?.[matchAt] ?? null) : undefined;
    const { program, problem } = programs.get(job.program) ?? UNKNOWN;
    try {
      if (program === undefined) throw new ResultProblem('syntax', problem);
      results.accept(program(value, exists, context));
    } catch (thrown) {
      results.fail(thrown);
    }
    matchAt += 1;
    if (matchAt >= job.count) [jobAt, matchAt] = [jobAt + 1, 0];
  };

  return {
    define: (id, program, problem) => void programs.set(id, { program, problem }),
    forget: (id) => void programs.delete(id),
    load(batch) {
      jobs = JSON.parse(batch) as readonly JobMessage[];
      [jobAt, matchAt] = [0, 0];
    },
    advance(matchesMax) {
      const results = new ResultList(places);
      let checkedAt = now();
      const end = checkedAt + shareMs;
      let job = jobs[jobAt];
      for (let left = matchesMax, stride = 1, unread = 1; job !== undefined && left > 0; left--) {
        evaluateNext(job, results);
        job = jobs[jobAt];
        unread -= 1;
        if (unread > 0) continue;
        const time = now();
        if (time >= end || results.bytes > OUTPUT_BYTES_MAX) break;
        // The clock is read after every slow match, rarely for fast ones, of which it would cost a tenth.
        stride = time - checkedAt > 1 ? 1 : Math.min(stride * 2, STRIDE_MAX);
        [checkedAt, unread] = [time, stride];
      }
      if (job === undefined) jobs = [];
      return `${job === undefined ? '.' : '+'}${JSON.stringify(results.toMessage())}`;
    },
  };
}

/** Not recursive, because data may have any depth. */
function freezeDeep(value: unknown): void {
  if (Object.isFrozen(value)) return;
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    if (typeof next !== 'object' || next === null || Object.isFrozen(next)) continue;
    Object.freeze(next);
    const members: unknown[] = Object.values(next);
    for (let i = 0; i < members.length; i++) pending.push(members[i]);
  }
}
