/** What the page of the demo says of a change. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { describeChange } from '../../src/showcase/demo-page.ts';
import type { KubeObject } from '../../src/kube/object.ts';

describe('the change of a row', () => {
  const db = (content: JsonObject, annotations = {}): KubeObject => ({
    metadata: { name: 'db', annotations },
    ...content,
  });
  test.each([
    ['a value', db({}, { 'x.org/owner': 'a' }), db({}, { 'x.org/owner': 'b' }), 'owner a → b'],
    ['a new element', db({ ips: [{ ip: '1' }] }), db({ ips: [{ ip: '1' }, { ip: '2' }] }), '+ ips 2'],
    ['a removed value', db({ a: true }), db({}), '− a true'],
    ['bookkeeping', db({}), db({}, { 'vcluster.loft.sh/object-name': 'db' }), ''],
    ['several', db({ a: 1, b: 1, c: 1, d: 1 }), db({ a: 2, b: 2, c: 2, d: 2 }), 'a 1 → 2, b 1 → 2, 2 more'],
    ['a long value', db({ a: 'x'.repeat(50) }), db({ a: 1 }), `a ${'x'.repeat(40)}… → 1`],
  ])('%s is named', (_, before, after, text) => {
    expect(describeChange(before, after)).toBe(text);
  });
});
