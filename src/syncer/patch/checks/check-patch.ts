/** Checks a patch without running it. The caller adds file and position. */

import { unmatchable, type KnownFields } from './field-warnings.ts';
import { parsePath, type Segment } from '../paths/path-syntax.ts';
import type { PatchConfig, PatchFieldProblem, PathSegment, ReferenceConfig } from '../../../config/types.ts';
import { compileExpression } from '../../sandbox/front-end/compile-expression.ts';
import type { MatchFacts } from '../../sandbox/front-end/warnings.ts';
import { otherReading } from './other-reading.ts';
import { valueTypeOf } from './sample-values.ts';

/** Every problem of one patch; offsets are characters from the start of the field's text. Never throws. */
export function checkPatch(patch: PatchConfig, known?: KnownFields): readonly PatchFieldProblem[] {
  const facts = matchFacts(patch.path);
  return [
    ...checkPath('path', patch.path, known),
    ...checkExpression('expression', patch.expression, facts),
    ...checkExpression('reverseExpression', patch.reverseExpression, facts),
    ...checkReference(patch.reference),
  ];
}

/** The segments of a path, `null` for a wildcard; undefined when it does not parse. */
export function pathSegments(path: string): readonly PathSegment[] | undefined {
  const parsed = parsePath(path);
  return parsed.ok ? parsed.segments.map(plainSegment) : undefined;
}

function plainSegment(segment: Segment): PathSegment {
  switch (segment.kind) {
    case 'key':
      return segment.key;
    case 'index':
      return segment.index;
    case 'wildcard':
      return null;
    default:
      return segment satisfies never;
  }
}

function checkPath(
  field: string,
  text: string,
  known: KnownFields | undefined,
): readonly PatchFieldProblem[] {
  const parsed = parsePath(text);
  if (!parsed.ok) return [{ field, message: parsed.problem.message, offset: parsed.problem.offset }];
  const problem = (known && unmatchable(text, parsed.segments, known)) ?? otherReading(text, parsed.segments);
  return problem === undefined ? [] : [{ field, ...problem, severity: 'warning' }];
}

function checkExpression(
  field: string,
  text: string | undefined,
  facts: MatchFacts,
): readonly PatchFieldProblem[] {
  if (text === undefined) return [];
  const compiled = compileExpression(text, 0);
  if (compiled.ok)
    return compiled.warnings(facts).map((warning) => ({ field, ...warning, severity: 'warning' }));
  return [{ field, message: compiled.problem.message, offset: compiled.problem.offset }];
}

function matchFacts(path: string): MatchFacts {
  const parsed = parsePath(path);
  if (!parsed.ok) return {};
  const { segments } = parsed;
  const valueType = valueTypeOf(segments);
  return {
    hasWildcard: segments.some(({ kind }) => kind === 'wildcard'),
    ...(valueType === undefined ? {} : { valueType }),
  };
}

const SUB_PATHS = ['apiVersionPath', 'kindPath', 'namePath', 'namespacePath'] as const;

function checkReference(reference: ReferenceConfig | undefined): readonly PatchFieldProblem[] {
  if (reference === undefined) return [];
  return SUB_PATHS.flatMap((name) => checkSubPath(`reference.${name}`, reference[name]));
}

/** A path in `reference` has to select exactly one place below the matched value. */
function checkSubPath(field: string, text: string | undefined): readonly PatchFieldProblem[] {
  if (text === undefined || text === '') return [];
  const parsed = parsePath(text);
  if (!parsed.ok) return [{ field, message: parsed.problem.message, offset: parsed.problem.offset }];
  if (parsed.segments.length === 0) {
    return [{ field, message: 'it has to name a member of the matched value', offset: 0 }];
  }
  if (!parsed.segments.some((segment) => segment.kind === 'wildcard')) return [];
  return [
    {
      field,
      message: 'a wildcard is not possible here: it has to name one place',
      offset: text.indexOf('*'),
    },
  ];
}
