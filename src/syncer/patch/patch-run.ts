/** One run of the patches over one object, in one direction. */

import { InvariantError, PatchError } from '../../base/errors.ts';
import { isJsonObject, ownValue, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import { Evaluation, type LocalEvaluator } from '../../expressions/local/types.ts';
import type {
  EvaluateRequest,
  EvaluateResponse,
  Evaluator,
  ObjectIdentity,
  Program,
} from '../../expressions/types.ts';
import type { ConcretePath, FlowRules, LabelTranslator } from '../translate/types.ts';
import {
  type CompiledFilter,
  type CompiledPatch,
  type CompiledPatches,
  covers,
  createFlow,
  type FilteredPaths,
  keptPaths,
} from './compile.ts';
import type { FilledContext } from './empty-lists.ts';
import { evaluateError, filterError, patchError } from './patch-failures.ts';
import { printPath } from './path-syntax.ts';
import { layOver, restoreProtected, withKind } from './protect.ts';
import { type CompiledReference, UntranslatableValue } from './reference-parts.ts';
import { ReferenceTranslation, type ReferenceRules } from './reference-translation.ts';
import type { Direction, PatchedObject, ValidateResult } from './types.ts';
import {
  change,
  locate,
  overlay,
  replace,
  valuesOf,
  type Change,
  type Path,
  type Selection,
} from './walk.ts';

export interface PatchSettings {
  readonly compiled: CompiledPatches;
  readonly contentMembers: readonly string[];
  /** Undefined if no patch has an expression or a filter. */
  readonly evaluator: Evaluator | undefined;
  readonly references: ReferenceRules;
  readonly labels: LabelTranslator;
  /** Undefined: every result is accepted. */
  readonly validate?: ValidateResult | undefined;
}

export interface RunSettings extends PatchSettings, Pick<FlowRules, 'rulesOf'> {
  /** Patches whose paths have matched in no object yet. */
  readonly unmatched: Set<CompiledPatch>;
}

export interface RunInput {
  readonly direction: Direction;
  readonly object: JsonObject;
  readonly context: FilledContext;
  readonly failed: readonly PatchError[];
}

/** Independent patches, whose requests are sent to the sandbox together. */
export type Stage = readonly CompiledPatch[];

const NO_REFERENCES = { references: [], notAllowed: [], unresolved: [] };

export class PatchRun {
  readonly #settings: RunSettings;
  readonly #direction: Direction;
  readonly #input: JsonObject;
  readonly #context: FilledContext;
  readonly #failed: readonly PatchError[];
  readonly #stages: readonly Stage[];
  #object: JsonObject;
  #references: ReferenceTranslation | undefined;
  #evaluation: Evaluation | undefined;
  /** Of the patches with filters, by index: what their paths match in this object. */
  #filtered: Map<number, FilteredPaths & { readonly path: Path }> | undefined;

  constructor(
    settings: RunSettings,
    { direction, object, context, failed }: RunInput,
    stages: readonly Stage[],
  ) {
    this.#settings = settings;
    this.#failed = failed;
    this.#stages = stages;
    this.#direction = direction;
    this.#input = object;
    this.#object = object;
    this.#context = context;
  }

  /** A promise if a patch waits. Throws or rejects with the error of the first patch that fails, in the order of the patches. */
  patched(): PatchedObject | Promise<PatchedObject> {
    const pending = this.#applyFrom(0);
    return pending === undefined ? this.#finish() : pending.then(() => this.#finish());
  }

  #applyFrom(first: number): void | Promise<void> {
    for (let at = first; at < this.#stages.length; at++) {
      const pending = this.#apply(this.#stages[at] ?? []);
      if (pending !== undefined) return pending.then(() => this.#applyFrom(at + 1));
    }
  }

  #apply(stage: Stage): void | Promise<void> {
    const [first, ...others] = stage;
    if (first !== undefined && others.length === 0) return this.#run(first);
    return runAll(stage.map((patch) => () => this.#run(patch)));
  }

  #finish(): PatchedObject {
    this.#validate();
    const { references, notAllowed, unresolved } = this.#references ?? NO_REFERENCES;
    const patched = { object: this.#object, references, notAllowed, unresolved };
    const isWhole = this.#failed.length === 0 && this.#filtered === undefined;
    return isWhole ? patched : { ...patched, ...this.#failedPatches(), ...this.#decided() };
  }

  #failedPatches(): Pick<PatchedObject, 'failed'> {
    const [first, ...others] = this.#failed;
    if (first === undefined) return {};
    const patches = this.#settings.compiled.patches.filter((patch) => this.#isLeftOut(patch));
    return { failed: { errors: [first, ...others], kept: keptPaths(patches) } };
  }

  #decided(): Pick<PatchedObject, 'flows' | 'matched'> {
    const filtered = this.#filtered;
    if (filtered === undefined) return {};
    const { compiled, contentMembers, rulesOf } = this.#settings;
    return {
      flows: { ...createFlow(compiled.patches, contentMembers, filtered), rulesOf },
      matched: new Map([...filtered].map(([index, { matched }]) => [index, matched])),
    };
  }

  #isLeftOut({ index }: CompiledPatch): boolean {
    return this.#failed.some((error) => error.index === index);
  }

  #run(patch: CompiledPatch): void | Promise<void> {
    if (this.#isLeftOut(patch)) return undefined;
    if (patch.filters.length === 0) return this.#act(patch);
    const pending = this.#select(patch);
    return pending === undefined ? this.#act(patch) : pending.then(() => this.#act(patch));
  }

  #act(patch: CompiledPatch): void | Promise<void> {
    const { unmatched } = this.#settings;
    if (unmatched.has(patch) && locate(this.#path(patch), this.#object).length > 0) unmatched.delete(patch);
    const action = patch.actions[this.#direction];
    switch (action.kind) {
      case 'evaluate':
        return this.#evaluate(patch, action.program);
      case 'keep':
        return this.#keep(patch);
      case 'reference':
        return this.#translateReferences(patch, action.reference);
      case 'value': {
        const place = { direction: this.#direction, labels: this.#settings.labels };
        return this.#transform(patch, (value) => action.translate(value, place));
      }
      default:
        return action satisfies never;
    }
  }

  #select(patch: CompiledPatch, selections: readonly Selection[] = []): void | Promise<void> {
    const filter = patch.filters[selections.length];
    if (filter !== undefined) {
      const decided = this.#decide(patch, filter, selections);
      const withSelection = (selection: Selection): void | Promise<void> =>
        this.#select(patch, [...selections, selection]);
      return decided instanceof Promise ? decided.then(withSelection) : withSelection(decided);
    }
    const path = { ...patch.paths[this.#direction], selections };
    const { hostObject } = this.#context;
    this.#filtered ??= new Map();
    this.#filtered.set(patch.index, {
      path,
      matched: locate(path, this.#object),
      host: hostObject === null ? undefined : locate({ ...patch.paths.toVirtual, selections }, hostObject),
    });
  }

  #decide(
    patch: CompiledPatch,
    filter: CompiledFilter,
    before: readonly Selection[],
  ): Selection | Promise<Selection> {
    const path = { ...filter.candidates, selections: before };
    const object = this.#object;
    const candidates = [object, this.#target() ?? {}].flatMap((root) =>
      locate(path, root).map((place): Candidate => ({ root, place, value: valueAt(root, place) ?? null })),
    );
    if (candidates.length === 0) return new Map();
    const { program } = filter;
    const values = candidates.map(({ value }) => value);
    const paths = program.reads.path ? candidates.map(({ place }) => printPath(place)) : undefined;
    const take = ({ values: decisions, errors }: EvaluateResponse): Selection => {
      const failed = candidates.findIndex(({ root }, at) => root === object && errors?.has(at));
      const error = errors?.get(failed);
      if (error !== undefined) throw filterError(patch, filter, candidates[failed]?.place ?? [], error);
      return selectionOf(candidates, decisions);
    };
    const response = this.#request(program, values, paths);
    return response instanceof Promise ? response.then(take) : take(response);
  }

  #path(patch: CompiledPatch): Path {
    return this.#filtered?.get(patch.index)?.path ?? patch.paths[this.#direction];
  }

  #target(): JsonObject | undefined {
    const { hostObject, virtualObject } = this.#context;
    return (this.#direction === 'toHost' ? hostObject : virtualObject) ?? undefined;
  }

  #translateReferences(patch: CompiledPatch, reference: CompiledReference): void {
    const { references: rules } = this.#settings;
    const translation = (this.#references ??= new ReferenceTranslation(
      rules,
      this.#direction,
      this.#context,
    ));
    translation.prepare(reference, () => valuesOf(this.#path(patch), this.#object));
    this.#transform(patch, (value, path) =>
      translation.translate(reference, { value, path, object: this.#object }),
    );
  }

  /** Keeps the value of the target. A whole object gets `apiVersion` and `kind` of this side. */
  #keep(patch: CompiledPatch): void {
    const kept = overlay(this.#path(patch), this.#object, this.#target()) ?? {};
    const isWhole = patch.segments.length === 0;
    this.#put(patch, isWhole ? withKind(kept, this.#object) : kept, 'restore');
  }

  #evaluate(patch: CompiledPatch, program: Program): void | Promise<void> {
    const local = this.#settings.evaluator?.local?.(program.id);
    if (local !== undefined && this.#evaluateHere(patch, local)) return undefined;
    const path = this.#path(patch);
    const values = valuesOf(path, this.#object);
    if (values.length === 0) return undefined;
    const paths = program.reads.path ? locate(path, this.#object).map(printPath) : undefined;
    const take = ({ values: results, errors }: EvaluateResponse): void => {
      if (errors !== undefined && errors.size > 0)
        throw evaluateError(patch, locate(path, this.#object), errors, this.#direction);
      this.#replace(patch, replace(path, this.#object, results));
    };
    const response = this.#request(program, values, paths, local !== undefined);
    return response instanceof Promise ? response.then(take) : take(response);
  }

  /** Without a request, and in one walk. False: it was declined, or something threw, which it does in the sandbox as well, with a message and a place. */
  #evaluateHere(patch: CompiledPatch, local: LocalEvaluator): boolean {
    const evaluation = (this.#evaluation ??= new Evaluation(this.#context, this.#context.budget));
    const { readsPath } = local;
    const evaluate: Change = (value, place) =>
      local.evaluate(evaluation, value, readsPath ? printPath(place) : '');
    let changed: JsonValue | undefined;
    try {
      changed = change(this.#path(patch), this.#object, evaluate, readsPath);
    } catch {
      return false;
    }
    if (evaluation.evaluator === local) this.#replace(patch, changed);
    local.finish(evaluation);
    return true;
  }

  #request(
    { id }: Program,
    values: EvaluateRequest['values'],
    paths: EvaluateRequest['paths'],
    isDeclined = false,
  ): EvaluateResponse | Promise<EvaluateResponse> {
    const { evaluator } = this.#settings;
    if (evaluator === undefined) throw new InvariantError('an expression patch without an evaluator');
    return evaluator.evaluate({
      program: id,
      object: this.#identity(),
      context: this.#context,
      values,
      paths,
      budget: this.#context.budget,
      isDeclined,
    });
  }

  /** Equal in both directions if the virtual object is known. */
  #identity(): ObjectIdentity {
    const { virtualObject, objectNamespace } = this.#context;
    const metadata = ownValue(virtualObject ?? this.#input, 'metadata');
    const name = isJsonObject(metadata) ? ownValue(metadata, 'name') : undefined;
    return { namespace: objectNamespace, name: typeof name === 'string' ? name : '' };
  }

  /** A change without the sandbox. `translate` throws {@link UntranslatableValue}. */
  #transform(patch: CompiledPatch, translate: (value: JsonValue, place: ConcretePath) => JsonValue): void {
    const translated: Change = (value, place) => {
      try {
        return translate(value ?? null, place.slice());
      } catch (error) {
        if (!(error instanceof UntranslatableValue)) throw error;
        const { message, retryAfterMs } = error;
        throw patchError(patch, message, { path: place, kind: 'runtime', retryAfterMs });
      }
    };
    this.#replace(patch, change(this.#path(patch), this.#object, translated, true));
  }

  /** With what the values at the path of the patch have become; undefined: the whole object is deleted. */
  #replace(patch: CompiledPatch, changed: JsonValue | undefined): void {
    if (patch.segments.length > 0) {
      this.#put(patch, changed ?? {});
      return;
    }
    if (!isJsonObject(changed))
      throw patchError(patch, 'the whole object must stay an object', { path: [], kind: 'result' });
    this.#put(patch, layOver(this.#object, changed));
  }

  #put(patch: CompiledPatch, result: JsonValue, onIdentityChange: 'fail' | 'restore' = 'fail'): void {
    if (!isJsonObject(result)) throw new InvariantError('a patched object is an object');
    if (!patch.touchesProtected) {
      this.#object = result;
      return;
    }
    const restored = restoreProtected(this.#object, result, onIdentityChange);
    if (!restored.ok) throw patchError(patch, restored.message, { path: restored.path, kind: 'result' });
    this.#object = restored.object;
  }

  #validate(): void {
    if (this.#direction !== 'toHost' || this.#object === this.#input) return;
    const problem = this.#settings.validate?.(this.#input, this.#object);
    if (problem === undefined) return;
    const patches = this.#stages.flat().filter((patch) => !this.#isLeftOut(patch));
    const cause = patches.findLast((patch) => mayHaveWritten(patch, problem.path)) ?? patches.at(-1);
    if (cause !== undefined) throw patchError(cause, problem.message, { path: problem.path, kind: 'result' });
  }

  /** A patch that fails where an earlier one has left an invalid value is not at fault: the error is that of the earlier one. */
  causeOf(error: unknown): unknown {
    const patches = this.#stages.flat();
    const failing = patches.findIndex(({ index }) => error instanceof PatchError && index === error.index);
    const patch = patches[failing];
    if (patch === undefined) return error;
    const problem = this.#settings.validate?.(this.#input, this.#object, {
      concerns: (path) => mayHaveWritten(patch, path),
    });
    if (problem === undefined) return error;
    const { path, message } = problem;
    const earlier = patches.slice(0, failing).filter((each) => !this.#isLeftOut(each));
    const cause = earlier.findLast((each) => mayHaveWritten(each, path));
    return cause === undefined ? error : patchError(cause, message, { path, kind: 'result' });
  }
}

type Task = () => void | Promise<void>;

/** Without a promise if no task waits and none fails. */
function runAll(tasks: readonly Task[]): void | Promise<void> {
  const started = tasks.map((task) => {
    try {
      return task();
    } catch (error) {
      return Promise.reject<void>(error as Error); // to be compared with those that wait
    }
  });
  const pending = started.filter((each) => each !== undefined);
  return pending.length === 0 ? undefined : settleAll(pending);
}

/** With the first error in the order of the tasks, when all of them have settled. */
async function settleAll(tasks: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(tasks);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}

interface Candidate {
  readonly root: JsonObject;
  readonly place: ConcretePath;
  readonly value: JsonValue;
}

/** A filter that fails on the object of the other side selects nothing there. */
function selectionOf(
  candidates: readonly Candidate[],
  decisions: readonly (JsonValue | undefined)[],
): Selection {
  const selection = new Map<JsonValue, Set<string | number>>();
  for (const [at, { root, place }] of candidates.entries()) {
    const parent = valueAt(root, place.slice(0, -1));
    const last = place.at(-1);
    if (decisions[at] !== true || parent === undefined || last === undefined) continue;
    const selected = selection.get(parent);
    if (selected === undefined) selection.set(parent, new Set([last]));
    else selected.add(last);
  }
  return selection;
}

/** The path of the patch matches this path, one above it or one below it. */
function mayHaveWritten(patch: CompiledPatch, path: ConcretePath): boolean {
  return covers(patch.segments, path) || covers(patch.segments.slice(0, path.length), path);
}
