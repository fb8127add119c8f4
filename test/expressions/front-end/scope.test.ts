/** The names in scope: what is suggested in place of others, and that they are those of the realm. */

import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { compileExpression } from '../../../src/expressions/front-end/compile-expression.ts';
import { GLOBAL_NAMES } from '../../../src/expressions/front-end/scope.ts';
import { ALLOWED, ALLOWED_HIDDEN } from '../../../src/expressions/guest/harden.ts';
import { placedProblem } from './compiled.ts';

test.each([
  ['vlaue', '1:1 forbidden: `vlaue` is not available here; did you mean `value`?'],
  ['Value', '1:1 forbidden: `Value` is not available here; did you mean `value`?'],
  [
    'x.y',
    '1:1 forbidden: `x` is not available here; in scope are value, valueExists and context, and text needs quotes inside the expression',
  ],
  [
    'context.vObject.metadata.name',
    '1:1 forbidden: `context.vObject` does not exist; did you mean `context.virtualObject`?',
  ],
  [
    '({ ...context.pObject })',
    '1:7 forbidden: `context.pObject` does not exist; did you mean `context.hostObject`?',
  ],
  [
    'const { hostobject } = context; hostobject',
    '1:9 forbidden: `context.hostobject` does not exist; did you mean `context.hostObject`?',
  ],
  [
    'context.object',
    '1:1 forbidden: `context.object` does not exist; it has vcluster, hostObject, virtualObject, path',
  ],
  ['base64.encod(value)', '1:1 forbidden: `base64.encod` does not exist; did you mean `base64.encode`?'],
  [
    'const { parse } = base64; parse(value)',
    '1:9 forbidden: `base64.parse` does not exist; it has encode, decode',
  ],
  [
    'context.vcluster.names',
    '1:1 forbidden: `context.vcluster.names` does not exist; did you mean `context.vcluster.name`?',
  ],
])('%j is refused', (expression, problem) => {
  expect(placedProblem(expression)).toBe(problem);
});

test('every global of the language is in scope, or refused with a reason', () => {
  const messageOf = (name: string): string => {
    const outcome = compileExpression(name, 0);
    return outcome.ok ? '' : outcome.problem.message;
  };
  const globals = runInNewContext('Object.getOwnPropertyNames(globalThis)') as string[];
  const others = globals.filter((name) => !GLOBAL_NAMES.includes(name));
  expect(others.length).toBeGreaterThan(20);
  expect(others.filter((name) => messageOf(name) === '' || messageOf(name).includes('here; '))).toEqual([]);
  // Those of Node.js alone are refused too.
  const ofNode = Object.getOwnPropertyNames(globalThis).filter((name) => !GLOBAL_NAMES.includes(name));
  expect(ofNode.filter((name) => messageOf(name) === '')).toEqual([]);
});

describe('what the realm lacks is refused before it runs', () => {
  const EVERYWHERE = ['length', 'name', 'prototype'];
  // Of a realm of their own: libraries add members to those of this process.
  const intrinsics: unknown = runInNewContext('globalThis');
  // `typeof` passes: it asks whether the member exists.
  const absent = Object.entries({
    ...ALLOWED,
    'Uint8Array.prototype.[prototype]': ALLOWED_HIDDEN['%TypedArrayPrototype%'] ?? '',
  }).flatMap(([path, members]) => {
    const holder = path
      .split('.')
      .reduce<unknown>(
        (from, key) =>
          key === '[prototype]' ? Object.getPrototypeOf(from) : Reflect.get(from as object, key),
        intrinsics,
      );
    if (path === 'Function.prototype' || holder === undefined) return [];
    const keys = Object.getOwnPropertyNames(holder).filter(
      (key) => !members.split(' ').includes(key) && !EVERYWHERE.includes(key),
    );
    if (!path.includes('.')) return keys.map((key) => `${path}[${JSON.stringify(key)}]`);
    // A missing accessor is undefined, as any missing member of a value is.
    const methods = keys.filter(
      (key) => typeof Object.getOwnPropertyDescriptor(holder, key)?.value === 'function',
    );
    return methods.flatMap((key) => [
      `value[${JSON.stringify(key)}]()`,
      ...(path.includes('[') ? [] : [`${path}[${JSON.stringify(key)}]`]),
    ]);
  });
  const globals = Object.getOwnPropertyNames(globalThis).filter(
    (name) => !GLOBAL_NAMES.includes(name) && /^[a-z]\w*$/i.test(name),
  );

  test('there are such members and globals', () => {
    expect(absent).toEqual(expect.arrayContaining(['Math["random"]', 'value["getHours"]()']));
    expect(globals).toEqual(expect.arrayContaining(['Promise', 'Float16Array', 'process']));
  });

  test.each(absent)('%s, with its reason', (expression) => {
    const outcome = compileExpression(expression, 0);
    expect(outcome.ok || outcome.problem.message).toMatch(/ is not allowed in an expression: ./u);
  });

  test.each(globals)('%s', (name) => {
    const outcome = compileExpression(`${name}("x")`, 0);
    expect(outcome.ok || outcome.problem.message).toMatch(/is not (available here|allowed)/u);
  });

  test('but no member that the realm has', () => {
    const present = Object.entries(ALLOWED).flatMap(([path, members]) =>
      members
        .split(' ')
        .filter((member) => /^\w+$/u.test(member) && member !== 'constructor')
        .flatMap((member) => [
          ...(path === 'Function.prototype' ? [] : [`${path}.${member}`]),
          ...(path.includes('.') ? [`value.${member}()`] : []),
        ]),
    );
    expect(present.length).toBeGreaterThan(300);
    expect(present.filter((expression) => !compileExpression(expression, 0).ok)).toEqual([]);
  });
});
