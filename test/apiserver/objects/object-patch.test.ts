/** Errors of patches. */

import { describe, expect, test } from 'vitest';
import { JSON_PATCH, Keys, MERGE } from '../key-requests.ts';

describe('errors', () => {
  test('of a patch name the field and never quote the object', async () => {
    await using keys = await Keys.open();
    await keys.create('k', {}, { user: 'SECRET', ttl: 1 });
    const wrongType = await keys.send(
      'PATCH',
      '/k',
      [{ op: 'replace', path: '/spec/ttl', value: 'x' }],
      JSON_PATCH,
    );
    expect(wrongType.json).toMatchObject({
      code: 422,
      message:
        ' "" is invalid: patch: Invalid value: json: cannot unmarshal string into Go struct field OwnedAccessKeySpec.spec.ttl of type int64',
      details: { causes: [{ reason: 'FieldValueInvalid', field: 'patch' }] },
    });
    const kind = await keys.send('PATCH', '/k', { kind: 'Other' }, MERGE);
    const unknown = await keys.send('PATCH', '/k?fieldValidation=Strict', { spec: { bogus: 1 } }, MERGE);
    expect([kind.status, unknown.status]).toEqual([422, 422]);
    expect(unknown.json?.['message']).toContain('unknown field "spec.bogus"');
    expect(wrongType.text + kind.text + unknown.text).not.toContain('SECRET');
  });
});
