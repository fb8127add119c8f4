/** The scopes of the documentation are valid. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../../src/base/json.ts';
import { grantsOf } from '../../../src/access-keys/authorization/scope-grants.ts';
import { validateScope } from '../../../src/access-keys/authorization/scope-validation.ts';

const PAGE = join(import.meta.dirname, '..', '..', '..', 'docs', 'scopes-and-rights.md');

test('every scope on the page is valid, and each of its entries grants something', () => {
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/^```yaml scope\n(.*?)^```$/gms)];
  const scopes = blocks.map(([, text = '']) => parse(text) as JsonObject); // objects, as the page shows
  expect(scopes).toHaveLength(2);
  for (const scope of scopes) {
    expect(validateScope(scope, 'spec.scope')).toEqual([]);
    const places = new Set(grantsOf(scope).map(({ place }) => place));
    for (const [list, entries] of Object.entries(scope)) {
      for (const index of (entries as JsonObject[]).keys()) expect(places).toContain(`${list}[${index}]`);
    }
  }
});
