/** Generates source from the checked syntax tree, so that nothing runs that the parser interpreted differently. */

import { parse } from 'acorn';
import { GENERATOR, generate, type Generator, type State } from 'astring';
import type { ParsedExpression } from './parse.ts';
import type { Mapping } from '../types.ts';
import { childrenOf, identifierName, isNode, visit, type SyntaxNode } from './syntax-tree.ts';

export interface GeneratedSource {
  /** A function expression of `(value, valueExists, context)`. */
  readonly source: string;
  readonly mappings: readonly Mapping[];
}

type EstreeNode = Parameters<Generator['Identifier']>[0];

const POSITION = { start: 0, end: 0 };
const HEAD = '(function (value, valueExists, context) {\n"use strict";\n';

/** `undefined` if the generated text does not parse to the same tree. */
export function generateSource({
  statements,
  result,
  visits,
}: ParsedExpression): GeneratedSource | undefined {
  const ending = isStatement(result)
    ? returnCompletion(result, unusedName(visits.map(({ node }) => identifierName(node))))
    : [{ type: 'ReturnStatement', argument: result, ...POSITION }];
  const body = [...statements, ...ending];
  const { text, mappings } = print(body, HEAD.split('\n').length - 1);
  const source = `${HEAD}${text}\n})`;
  return readsBack(source, body) ? { source, mappings } : undefined;
}

function unusedName(taken: readonly (string | undefined)[]): string {
  let name = 'result';
  while (taken.includes(name)) name += '_';
  return name;
}

function print(
  body: readonly unknown[],
  linesBefore: number,
): { text: string; mappings: readonly Mapping[] } {
  const mappings: Mapping[] = [];
  const sourceMap = {
    file: '',
    addMapping(mapping: {
      original?: { line: number; column: number } | null;
      generated: { line: number; column: number };
    }): void {
      const { original, generated } = mapping;
      if (!original) return;
      const last = mappings.at(-1);
      const [line, column] = [generated.line + linesBefore, generated.column + 1];
      if (last !== undefined && last.line === line && last.column === column) return;
      mappings.push({ line, column, toLine: original.line, toColumn: original.column + 1 });
    },
  };
  const program = { type: 'Program', body, sourceType: 'script' } as unknown as EstreeNode; // acorn's nodes are ESTree's
  // The types ask for a whole SourceMapGenerator; only `addMapping` and `file` are used.
  const options = { generator: PRINTER, indent: ' ', sourceMap: sourceMap as never };
  return { text: generate(program, options).trimEnd(), mappings };
}

/** Astring drops the parentheses of `(a?.b).c`, which are significant. */
const PRINTER = {
  ...GENERATOR,
  ChainExpression(node: { expression: EstreeNode }, state: State): void {
    state.write('(');
    const printer = PRINTER as unknown as Record<string, (node: EstreeNode, state: State) => void>;
    printer[node.expression.type]?.call(PRINTER, node.expression, state);
    state.write(')');
  },
} as unknown as Generator; // one printer of many is replaced

function readsBack(source: string, body: readonly SyntaxNode[]): boolean {
  const program = parseOrUndefined(source);
  if (program === undefined) return false;
  const outer = [...visit([program])].find(({ node }) => node.type === 'FunctionExpression')?.node['body'];
  // Without the directive.
  const statements = isNode(outer)
    ? childrenOf(outer)
        .map((child) => child.node)
        .slice(1)
    : [];
  return statements.length === body.length && statements.every((node, i) => sameTree(node, body[i]));
}

function parseOrUndefined(source: string): SyntaxNode | undefined {
  try {
    const program: unknown = parse(source, { ecmaVersion: 2025, sourceType: 'module' });
    return isNode(program) ? program : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const POSITION_MEMBERS: ReadonlySet<string> = new Set(['start', 'end', 'loc', 'range', 'raw', 'directive']);

function sameTree(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((element, i) => sameTree(element, b[i]));
  }
  if (!isNode(a) || !isNode(b)) return isSameLeaf(a, b);
  const keys = new Set([...Object.keys(a), ...Object.keys(b)].filter((key) => !POSITION_MEMBERS.has(key)));
  return [...keys].every((key) => sameTree(a[key], b[key]));
}

function isSameLeaf(a: unknown, b: unknown): boolean {
  if (Object.is(a, b) || (a ?? undefined) === (b ?? undefined)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  // Regular expressions and cooked template text.
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Members with statements that can provide the completion value; a `finally` block never does. */
const BODIES: Readonly<Record<string, readonly string[]>> = {
  BlockStatement: ['body'],
  CatchClause: ['body'],
  DoWhileStatement: ['body'],
  ForInStatement: ['body'],
  ForOfStatement: ['body'],
  ForStatement: ['body'],
  IfStatement: ['consequent', 'alternate'],
  LabeledStatement: ['body'],
  SwitchCase: ['consequent'],
  SwitchStatement: ['cases'],
  TryStatement: ['block', 'handler'],
  WhileStatement: ['body'],
};

function isStatement(node: SyntaxNode): boolean {
  return Object.hasOwn(BODIES, node.type);
}

/** Rewrites the statement to statements that end in `return`. `name` must be unused. */
function returnCompletion(statement: SyntaxNode, name: string): SyntaxNode[] {
  const variable = { type: 'Identifier', name, ...POSITION };
  const declaration = {
    type: 'VariableDeclaration',
    kind: 'let',
    declarations: [{ type: 'VariableDeclarator', id: variable, init: null, ...POSITION }],
    ...POSITION,
  };
  const returned = { type: 'ReturnStatement', argument: variable, ...POSITION };
  return [declaration, keepValues(statement, variable), returned];
}

function keepValues(node: SyntaxNode, variable: SyntaxNode): SyntaxNode {
  const { expression } = node;
  if (node.type === 'ExpressionStatement' && isNode(expression)) {
    const assignment = {
      type: 'AssignmentExpression',
      operator: '=',
      left: variable,
      right: expression,
      ...POSITION,
    };
    return { type: 'ExpressionStatement', expression: assignment, ...POSITION };
  }
  const changed: Record<string, unknown> = {};
  for (const role of BODIES[node.type] ?? []) {
    const member = node[role];
    if (isNode(member)) changed[role] = keepValues(member, variable);
    else if (Array.isArray(member)) {
      changed[role] = member.map((each: unknown) => (isNode(each) ? keepValues(each, variable) : each));
    }
  }
  return { ...node, ...changed };
}
