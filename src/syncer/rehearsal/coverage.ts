/** What the cases of one configuration cover: entries, their directions, and the branches of their expressions. */

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
import { parseExpression, parseFilter, type ParsedExpression } from '../../expressions/front-end/parse.ts';
import { isNode, type SyntaxNode } from '../../expressions/front-end/syntax-tree.ts';

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
  /** Values that the entry matched, over all cases; of a reference, those that name something. */
  readonly matches: number;
  readonly branches: readonly BranchCoverage[];
}

type BranchCoverage = Branch & { readonly isTaken: boolean };

/** Records every application of the pipelines while the cases run, and traces them afterwards. */
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

/** One line for each patch, direction and branch that no case covers. `isKindNamed`: more than one kind has patches, so an index alone is ambiguous. */
export function missed(
  { kind, index, path, directions, filterBranches }: PatchCoverage,
  isKindNamed: boolean,
): string[] {
  const entry = `${isKindNamed ? `${kind} ` : ''}patches[${index}]`;
  const name = `${entry} ${path === '' ? '(the whole object)' : path}`;
  if (directions.every(({ matches }) => matches === 0)) return [`${name}: never matched`];
  const ofFilters = filterBranches
    .filter(({ isTaken }) => !isTaken)
    .map(
      ({ line, column, text }) => `${name}: branch of the filter never taken at ${line}:${column}: ${text}`,
    );
  const ofDirections = directions.flatMap(({ direction, matches, branches }) => {
    const way = direction === 'toHost' ? 'virtual to host' : 'host to virtual';
    if (matches === 0) return [`${name}: never matched ${way}`];
    return branches
      .filter(({ isTaken }) => !isTaken)
      .map(({ line, column, text }) => `${name}: ${way}, branch never taken at ${line}:${column}: ${text}`);
  });
  return [...ofFilters, ...ofDirections];
}

// Which branches of an expression run: the expression is rewritten so that its value is a list with a 1 for each branch that was taken.

interface Branch {
  /** 1-based place in the expression. */
  readonly line: number;
  readonly column: number;
  readonly text: string;
}

interface BranchProbe {
  readonly branches: readonly Branch[];
  /** Its value is a list of 0 and 1, in the order of `branches`. */
  readonly expression: string;
}

const TEXT_MAX = 40;

/** Undefined: the expression has no branches, or cannot be parsed. */
function probeExpression(expression: string): BranchProbe | undefined {
  const outcome = parseExpression(expression);
  return outcome.ok ? probeBranches(expression, outcome.parsed, []) : undefined;
}

/** Besides the branches of its expression, a filter has one for what it leaves out. */
function probeFilter(filter: string): BranchProbe | undefined {
  const outcome = parseFilter(filter);
  if (!outcome.ok) return undefined;
  const { visits, result } = outcome.parsed;
  const elements = visits.filter(({ node }) => node.type === 'Identifier' && filter[node.start] === '@');
  const edits = elements.map(({ node }) => ({ at: node.start, text: 'value', replaced: 1 }));
  return probeBranches(filter, outcome.parsed, edits, result);
}

interface Edit {
  readonly at: number;
  readonly text: string;
  /** Default 0. */
  readonly replaced?: number;
}

/** `decision`: its value is a decision, and no is a branch. */
function probeBranches(
  expression: string,
  { visits, statements }: ParsedExpression,
  fixed: readonly Edit[],
  decision?: SyntaxNode,
): BranchProbe | undefined {
  const taken = unusedName(expression);
  const branches: Branch[] = [];
  const edits: Edit[] = [];
  const mark = (): string => `${taken}[${branches.length - 1}] = 1`;
  const add = (node: SyntaxNode): void => {
    branches.push(branchAt(expression, node.start, node.end));
  };
  const wrapExpression = (node: SyntaxNode): void => {
    add(node);
    edits.push({ at: node.start, text: `(${mark()}, ` }, { at: node.end, text: ')' });
  };
  const wrapStatement = (node: SyntaxNode): void => {
    add(node);
    edits.push({ at: node.start, text: `{ ${mark()}; ` }, { at: node.end, text: ' }' });
  };
  for (const { node } of visits) {
    const { type, consequent, alternate, right } = node as SyntaxNode & Record<string, unknown>;
    if (type === 'ConditionalExpression') [consequent, alternate].filter(isNode).forEach(wrapExpression);
    else if (type === 'LogicalExpression' && isNode(right)) wrapExpression(right);
    else if (type === 'IfStatement') [consequent, alternate].filter(isNode).forEach(wrapStatement);
    else if (type === 'SwitchCase' && Array.isArray(consequent) && isNode(consequent[0])) {
      add(consequent[0]);
      edits.push({ at: consequent[0].start, text: `${mark()}; ` });
    }
  }
  const marked = applyEdits(expression, [...edits, ...fixed]);
  let body = statements.length === 0 ? `(${marked}\n);` : `${marked}\n;`;
  if (decision !== undefined) {
    const place = branchAt(expression, decision.start, decision.end);
    branches.push({ ...place, text: 'a value is left out' });
    body = `(${marked}\n) || (${mark()});`;
  }
  if (branches.length === 0) return undefined;
  return {
    branches,
    expression: `const ${taken} = ${JSON.stringify(branches.map(() => 0))};\n${body}\n${taken}`,
  };
}

/** Edits at one place keep their order, parents first: openings nest, and closings are all alike. */
function applyEdits(text: string, edits: readonly Edit[]): string {
  let result = '';
  let from = 0;
  for (const edit of edits.toSorted((a, b) => a.at - b.at)) {
    result += text.slice(from, edit.at) + edit.text;
    from = edit.at + (edit.replaced ?? 0);
  }
  return result + text.slice(from);
}

function branchAt(expression: string, start: number, end: number): Branch {
  const before = expression.slice(0, start).split('\n');
  const text = expression.slice(start, end).replaceAll(/\s+/gu, ' ');
  return {
    line: before.length,
    column: (before.at(-1) ?? '').length + 1,
    text: text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX - 1)}…` : text,
  };
}

function unusedName(expression: string): string {
  let name = 'taken';
  while (expression.includes(name)) name += '_';
  return name;
}
