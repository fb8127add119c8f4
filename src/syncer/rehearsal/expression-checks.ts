/** What is known of the expressions of a configuration without a cluster: where the daemon evaluates each, and warnings about those that fail on an empty list or on every value, and about reverse expressions that do not undo theirs, found by running them in the sandbox. */

import { systemClock } from '../../base/clock.ts';
import { printableJson } from '../../base/excerpt.ts';
import { jsonEquals, type JsonValue } from '../../base/json.ts';
import { silentLogger } from '../../base/logger.ts';
import { warningAtValue, type Finding } from '../../config-file/finding.ts';
import { createSandbox } from '../../expressions/sandbox.ts';
import { placeIn, type Place } from '../../expressions/places.ts';
import type { EvaluateError, EvaluateResponse, Evaluator, Program } from '../../expressions/types.ts';
import { asJson, isOfKind, type KubeObject } from '../../kube/object.ts';
import type { Config } from '../config/config.ts';
import type { SyncableKind } from '../kinds/kind.ts';
import { SYNCABLE_KINDS } from '../kinds/synced-kinds.ts';
import { sampleValues } from '../patch/check-patch.ts';
import { compilePatches, type CompiledPatch } from '../patch/compile.ts';
import { isListPath } from '../patch/empty-lists.ts';
import { valuesOf } from '../patch/walk.ts';
import { sandboxSettings } from '../translation.ts';
import { trialOf, type Trial } from './patch-samples.ts';

const SAMPLE = { apiVersion: 'v1', metadata: { name: 'web', namespace: 'default' } };

interface SampledPatch {
  readonly kind: SyncableKind;
  readonly patch: CompiledPatch;
  readonly forward: Program;
  /** Undefined: there is no way back. */
  readonly reverse: Program | undefined;
}

type TwoWayPatch = SampledPatch & { readonly reverse: Program };

/** `objects`: virtual objects, such as those of test cases, which give values besides the built-in samples. */
export async function trialWarnings(config: Config, objects: readonly KubeObject[]): Promise<Finding[]> {
  const all = sampledPatches(config);
  const patches = all.filter((patch): patch is TwoWayPatch => patch.reverse !== undefined);
  const lists = all.filter(({ patch }) => isListPath(patch.segments));
  if (all.length === 0) return [];
  await using sandbox = await createSandbox({
    ...sandboxSettings(config),
    programs: all.flatMap(({ patch, forward, reverse }) => [
      forward,
      ...(reverse === undefined ? [] : [reverse]),
      ...patch.filters.map(({ program }) => program),
    ]),
    clock: systemClock,
    logger: silentLogger,
  });
  const findings: Finding[] = [];
  const warn = ({ kind, patch }: SampledPatch, key: string, message?: string, offset?: number): void => {
    const path = ['sync', 'toHost', kind.key, 'patches', patch.index, key];
    if (message !== undefined) findings.push(warningAtValue(path, message, offset));
  };
  for (const patch of lists) {
    const error = (await evaluate(sandbox, patch.forward, [[]])).errors?.get(0);
    const message = 'fails on an empty list, as objects without addresses have it';
    warn(patch, 'expression', error && `${message}: ${error.message}`);
  }
  for (const patch of all) {
    warn(patch, 'expression', await failureOnAll(patch, objects, sandbox));
  }
  for (const patch of patches) {
    warn(patch, 'reverseExpression', await firstMismatch(patch, objects, sandbox));
    const changed = await changedDecision(patch, sandbox);
    warn(patch, 'path', changed?.message, changed?.offset);
  }
  return findings;
}

function sampledPatches({ sync }: Config): readonly SampledPatch[] {
  let programs = 0;
  return SYNCABLE_KINDS.flatMap((kind) => {
    const compiled = compilePatches(sync[kind.key].patches, programs);
    programs += compiled.programs.length;
    return compiled.patches.flatMap((patch) => {
      const { toHost, toVirtual } = patch.actions;
      if (toHost.kind !== 'evaluate') return [];
      const reverse = toVirtual.kind === 'evaluate' ? toVirtual.program : undefined;
      return [{ kind, patch, forward: toHost.program, reverse }];
    });
  });
}

/** Of an expression that fails on every sample. */
async function failureOnAll(
  { kind, patch, forward }: SampledPatch,
  objects: readonly KubeObject[],
  evaluator: Evaluator,
): Promise<string | undefined> {
  const trial = trialOf(forward.expression, patch, kind.sample);
  const values = [...(trial?.values ?? []), ...matchesIn(objects, kind, patch)];
  if (trial === undefined || values.length === 0) return undefined;
  const { errors } = await evaluate(evaluator, forward, values);
  const first = errors?.get(0);
  if (first === undefined || values.some((_, at) => !isCounted(errors?.get(at), trial))) return undefined;
  return `fails on every value that was tried, such as ${shown(values[0] ?? null)}: ${first.message}`;
}

function isCounted(error: EvaluateError | undefined, { counts }: Trial): boolean {
  return error !== undefined && counts(error);
}

/** Values that the expression rejects or deletes are skipped. */
async function firstMismatch(
  { kind, patch, forward, reverse }: TwoWayPatch,
  objects: readonly KubeObject[],
  evaluator: Evaluator,
): Promise<string | undefined> {
  const values = [...matchesIn(objects, kind, patch), ...sampleValues(patch.segments)];
  const there = await evaluate(evaluator, forward, values);
  const kept = values.flatMap((value, at) => {
    const host = there.values[at] ?? null;
    return host === null || there.errors?.has(at) ? [] : [{ value, host }];
  });
  const hosts = kept.map(({ host }) => host);
  const back = await evaluate(evaluator, reverse, hosts);
  for (const [at, { value, host }] of kept.entries()) {
    const error = back.errors?.get(at);
    const becomes = `${shown(value)} becomes ${shown(host)} on the host`;
    if (error !== undefined) return `fails on a result of expression: ${becomes}, then ${error.message}`;
    const returned = back.values[at] ?? null;
    if (!jsonEquals(value, returned))
      return `does not undo expression: ${becomes}, and ${shown(returned)} on the way back`;
  }
  return undefined;
}

/** A value for which the last filter selects an element, and no longer selects it with the result of the expression. */
async function changedDecision(
  { patch, forward }: TwoWayPatch,
  evaluator: Evaluator,
): Promise<{ readonly message: string; readonly offset: number } | undefined> {
  const filter = patch.filters.at(-1);
  if (filter === undefined) return undefined;
  const { program, offset } = filter;
  const below = patch.segments.slice(patch.segments.findLastIndex(({ kind }) => kind === 'filter') + 1);
  const elementWith = (value: JsonValue): JsonValue =>
    below.reduceRight<JsonValue>(
      (inner, segment) => (segment.kind === 'key' ? { [segment.key]: inner } : [inner]),
      value,
    );
  const values = [...sampleValues(patch.segments), ...literalsIn(program.expression)];
  const there = await evaluate(evaluator, forward, values);
  const results = values.map((_, at) => there.values[at] ?? null);
  const before = await evaluate(evaluator, program, values.map(elementWith));
  const after = await evaluate(evaluator, program, results.map(elementWith));
  const found = values.findIndex((_, at) => before.values[at] === true && after.values[at] === false);
  if (found < 0) return undefined;
  const [was, is] = [shown(values[found] ?? null), shown(results[found] ?? null)];
  const message =
    `the filter selects ${was}, and not ${is}, which the expression makes of it: a change on the host would not ` +
    'come back; decide on a field that the patch leaves as it is';
  return { message, offset };
}

function literalsIn(filter: string): JsonValue[] {
  const texts = [...filter.matchAll(/"([^"\\]*)"|'([^'\\]*)'/g)].map(
    ([, double, single]) => double ?? single ?? '',
  );
  const numbers = [...filter.matchAll(/\b\d+\b/g)].map(([number]) => Number(number));
  return [...texts, ...numbers];
}

function matchesIn(
  objects: readonly KubeObject[],
  { resource }: SyncableKind,
  { paths }: CompiledPatch,
): JsonValue[] {
  return objects
    .filter((object) => isOfKind(object, resource))
    .flatMap((object) => valuesOf(paths.toVirtual, asJson(object)))
    .filter((value) => value !== undefined);
}

async function evaluate(
  evaluator: Evaluator,
  program: Program,
  values: readonly JsonValue[],
): Promise<EvaluateResponse> {
  return evaluator.evaluate({
    program: program.id,
    object: { namespace: 'default', name: 'web' },
    context: { hostObject: null, virtualObject: SAMPLE },
    values,
    paths: program.reads.path ? values.map(() => '') : undefined,
  });
}

function shown(value: JsonValue): string {
  const text = printableJson(value, 0);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

// Places.

interface PlaceFinding {
  readonly place: Place;
  /** Where and why, as text. */
  readonly finding: Finding;
}

/** Of each expression and filter, in the order of the configuration. */
export function expressionPlaces({ sync, sandbox }: Config): PlaceFinding[] {
  return SYNCABLE_KINDS.flatMap(({ key }) =>
    compilePatches(sync[key].patches).patches.flatMap(({ index, actions, filters }) => {
      const patch = ['sync', 'toHost', key, 'patches', index];
      const { toHost, toVirtual } = actions;
      return [
        ...filters.map(({ program, offset }) => ({ key: 'path', program, offset })),
        ...(toHost.kind === 'evaluate' ? [{ key: 'expression', program: toHost.program, offset: 0 }] : []),
        ...(toVirtual.kind === 'evaluate'
          ? [{ key: 'reverseExpression', program: toVirtual.program, offset: 0 }]
          : []),
      ].map(({ key, program, offset }) => {
        const { place, message, at } = placeIn(program, sandbox.localEvaluation);
        return { place, finding: warningAtValue([...patch, key], message, offset + at) };
      });
    }),
  );
}
