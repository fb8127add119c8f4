/** JSON Patches that are refused, and what their errors say. */

import { describe, expect, test } from 'vitest';
import { JSON_PATCH, Keys } from '../key-requests.ts';

test('errors name the operation and never quote a value', async () => {
  await using keys = await Keys.open();
  await keys.create('k', { labels: { a: 'b' } });
  const patch = [
    { op: 'test', path: '/metadata/labels/a', value: 'b' },
    { op: 'test', path: '/metadata/labels/a', value: 'guess' },
  ];
  const { json } = await keys.send('PATCH', '/k', patch, JSON_PATCH);
  expect(json?.['details']).toEqual({
    causes: [
      {
        reason: 'FieldValueInvalid',
        field: '[1]',
        message: 'operation 1 (test /metadata/labels/a): the value differs',
      },
    ],
  });
});

describe('a JSON Patch', () => {
  test.each([
    [
      'doubles the object with every copy',
      [
        { op: 'add', path: '/spec/groups', value: ['a'] },
        ...Array.from({ length: 60 }, (_, n) => ({
          op: 'copy',
          from: '/spec',
          path: `/spec/${'ab'.charAt(n % 2)}`,
        })),
      ],
      413,
    ],
    [
      'sets the length of a list',
      [
        { op: 'add', path: '/spec/groups', value: ['a'] },
        { op: 'replace', path: '/spec/groups/length', value: 4_294_967_295 },
      ],
      422,
    ],
    ['reaches into a prototype', [{ op: 'copy', from: '/spec/constructor', path: '/spec/user' }], 422],
    ['moves an object into itself', [{ op: 'move', from: '/metadata', path: '/metadata/labels' }], 422],
    [
      'has too many operations',
      Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/kind', value: 'x' })),
      413,
    ],
    ['replaces the object by nothing', [{ op: 'replace', path: '', value: null }], 422],
  ])('that %s is refused', async (_what, patch, code) => {
    await using keys = await Keys.open();
    await keys.create('k', {}, { groups: ['x'] });
    const answer = await keys.send('PATCH', '/k', patch, JSON_PATCH);
    expect(answer.json).toMatchObject({ kind: 'Status', code });
  });
});
