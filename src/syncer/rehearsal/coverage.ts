/** What the objects of runs with one configuration cover: entries, their directions, and the branches of their expressions. */

import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/logger.ts';
import type { Config } from '../config/config.ts';
import { compileKinds, syncedKinds } from '../kinds/synced-kinds.ts';
import { referencesIn } from '../patch/reference-parts.ts';
import { tracePatches } from '../patch/trace.ts';
import type { Direction } from '../patch/types.ts';
import { createSandbox } from '../../expressions/sandbox.ts';
import { sandboxSettings } from '../translation.ts';
import { reportingPipeline, type Application } from './pipelines.ts';
import { compileExpression } from '../../expressions/front-end/compile-expression.ts';
import type { EvaluateRequest, Evaluator, Program, ProgramId } from '../../expressions/types.ts';
import {
  probeExpression,
  probeFilter,
  type Branch,
  type BranchProbe,
} from '../../expressions/front-end/branch-probes.ts';

export interface PatchCoverage {
  /** The synced kind that the entry patches, such as `EndpointSlice`. */
  readonly kind: string;
  /** Index among the patches of that kind. */
  readonly index: number;
  readonly path: string;
  readonly directions: readonly DirectionCoverage[];
  /** Of the filters in the path, with the places in the path. */
  readonly filterBranches: readonly BranchCoverage[];
}

interface DirectionCoverage {
  readonly direction: Direction;
  /** Values that the entry matched, over all runs; of a reference, those that name something. */
  readonly matches: number;
  readonly branches: readonly BranchCoverage[];
}

type BranchCoverage = Branch & { readonly isTaken: boolean };

/** Records every application of the pipelines during the runs, and traces them afterwards. */
export class CoverageRun {
  readonly #applications: Application[] = [];

  readonly createPipeline = reportingPipeline((application) => this.#applications.push(application));

  async report(config: Config): Promise<PatchCoverage[]> {
    const kinds = compileKinds(syncedKinds(config), config.patches);
    const requests: EvaluateRequest[] = [];
    const matches = await this.#matches(requests);
    const programs = kinds.flatMap(({ patches }) => patches.programs);
    const filters = kinds.flatMap(({ patches }) => patches.patches.flatMap((patch) => patch.filters));
    const filterIds = new Set(filters.map(({ program }) => program.id));
    const branches = await takenBranches(programs, filterIds, requests, config);
    return kinds.flatMap(({ kind, patches: { patches } }) =>
      patches.map((patch) => ({
        kind: kind.resource.kind,
        index: patch.index,
        path: patch.config.path,
        directions: (['toHost', 'toVirtual'] as const).flatMap((direction) => {
          const action = patch.actions[direction];
          if (action.kind === 'keep') return [];
          const id = entryId(kind.resource.kind, patch.index, direction);
          const taken = action.kind === 'evaluate' ? (branches.get(action.program.id) ?? []) : [];
          return [{ direction, matches: matches.get(id) ?? 0, branches: taken }];
        }),
        filterBranches: patch.filters.flatMap(({ program, offset }) =>
          (branches.get(program.id) ?? []).map((branch) => ({ ...branch, column: branch.column + offset })),
        ),
      })),
    );
  }

  /** How many values each entry matched, by {@link entryId}. Every evaluation is added to `requests`. */
  async #matches(requests: EvaluateRequest[]): Promise<ReadonlyMap<string, number>> {
    const matches = new Map<string, number>();
    for (const { kind, options, direction, object, context } of this.#applications) {
      const { evaluator } = options;
      const traced = await tracePatches(
        {
          ...options,
          evaluator: evaluator && recording(evaluator, requests),
          monotonicMs: () => 0,
        },
        direction,
        object,
        context,
      );
      for (const patch of traced.patches) {
        const id = entryId(kind.resource.kind, patch.index, direction);
        const action = options.compiled.patches[patch.index]?.actions[direction];
        const counted =
          action?.kind === 'reference'
            ? patch.matches.filter(
                ({ before }) => before !== undefined && referencesIn(action.reference, before).length > 0,
              )
            : patch.matches;
        matches.set(id, (matches.get(id) ?? 0) + counted.length);
      }
    }
    return matches;
  }
}

async function takenBranches(
  programs: readonly Program[],
  filters: ReadonlySet<ProgramId>,
  requests: readonly EvaluateRequest[],
  config: Config,
): Promise<ReadonlyMap<ProgramId, readonly BranchCoverage[]>> {
  const probes = new Map<ProgramId, BranchProbe>();
  const probing: Program[] = [];
  for (const { id, expression } of programs) {
    const probe = filters.has(id) ? probeFilter(expression) : probeExpression(expression);
    const compiled = probe && compileExpression(probe.expression, id);
    if (probe === undefined || compiled?.ok !== true) continue;
    probes.set(id, probe);
    probing.push(compiled.program);
  }
  const taken = new Map<ProgramId, Set<number>>([...probes.keys()].map((id) => [id, new Set()]));
  if (probing.length > 0) {
    await using sandbox = await createSandbox({
      ...sandboxSettings(config),
      programs: probing,
      clock: systemClock,
      logger: silentLogger,
    });
    for (const request of requests) {
      const hits = taken.get(request.program);
      if (hits === undefined) continue;
      const { values } = await sandbox.evaluate(request);
      for (const value of values) {
        if (Array.isArray(value)) value.forEach((hit, at) => hit === 1 && hits.add(at));
      }
    }
  }
  return new Map(
    [...probes].map(([id, probe]) => [
      id,
      probe.branches.map((branch, at) => ({ ...branch, isTaken: taken.get(id)?.has(at) === true })),
    ]),
  );
}

/** Entries of different kinds have the same indexes. */
function entryId(kind: string, index: number, direction: Direction): string {
  return `${kind} ${index} ${direction}`;
}

function recording(evaluator: Evaluator, requests: EvaluateRequest[]): Evaluator {
  return {
    evaluate(request) {
      requests.push(request);
      return evaluator.evaluate(request);
    },
  };
}
