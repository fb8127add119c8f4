/** Which inputs and which parts of objects an expression reads. */

import { expect, test } from 'vitest';
import { compileExpression } from '../../../src/expressions/front-end/compile-expression.ts';
import { programOf } from '../test-sandbox.ts';
import { call } from './compiled.ts';

const none = { value: false, path: false, hostObject: [], virtualObject: [], vcluster: [] };
const all = { value: false, path: true, hostObject: [[]], virtualObject: [[]], vcluster: [[]] };

test.each([
  ['1 + 1', none],
  ['value', { ...none, value: true }],
  ['valueExists', { ...none, value: true }],
  ['((value) => value)(1)', { ...none, value: true }],
  ['context.vcluster.name', { ...none, vcluster: [['name']] }],
  ['context.vcluster.config.a.b[value]', { ...none, value: true, vcluster: [['config', 'a', 'b']] }],
  ['context["path"]', { ...none, path: true }],
  ['context.virtualObject.metadata.name', { ...none, virtualObject: [['metadata', 'name']] }],
  ['context?.path', { ...none, path: true }],
  ['context?.["path"]?.length', { ...none, path: true }],
  ['(context?.virtualObject.metadata).name', { ...none, virtualObject: [['metadata', 'name']] }],
  ['context?.virtualObject?.metadata?.["name"]', { ...none, virtualObject: [['metadata', 'name']] }],
  [
    'context.hostObject.metadata.labels[value]',
    { ...none, value: true, hostObject: [['metadata', 'labels']] },
  ],
  ['context.virtualObject.metadata.name.split("-")', { ...none, virtualObject: [['metadata', 'name']] }],
  ['context.virtualObject', { ...none, virtualObject: [[]] }],
  ['"a" in context.virtualObject.metadata', { ...none, virtualObject: [['metadata']] }],
  [
    'context.virtualObject.metadata.name + context.virtualObject.metadata',
    { ...none, virtualObject: [['metadata']] },
  ],
  ['const { metadata } = context.virtualObject; metadata.name', { ...none, virtualObject: [[]] }],
  ['(context.virtualObject.metadata.name = 1)', { ...none, virtualObject: [['metadata']] }],
  ['context', all],
  ['const { path } = context; path', all],
  ['context[value]', { ...all, value: true }],
  ['delete context.path', all],
  ['((context) => context.path)({})', all],
  ['[context.path] = [1]', all],
  ['typeof context.nothing', all],
])('%s', (expression, reads) => {
  expect(programOf(compileExpression(expression, 0)).reads).toEqual(reads);
});

test('names of the expression cannot clash with the members of context', () => {
  const expression = '((context_path) => context_path + context.path)("a")';
  expect(call(expression, 0, { path: 'b' })).toBe('ab');
  expect(programOf(compileExpression(expression, 0)).reads).toEqual({ ...none, path: true });
});
