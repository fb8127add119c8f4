/** The OpenAPI v3 documents: what clients read before they send a request, and how they cache it. */

import { expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { TestCluster } from '../../embedded-cluster/test-cluster.ts';

test('OpenAPI documents are named by a hash and not sent twice', async () => {
  await using cluster = await TestCluster.open();
  const index = (await cluster.send('GET', '/openapi/v3')).json as unknown as {
    paths: Record<string, { serverRelativeURL: string }>;
  }; // the index
  expect(Object.keys(index.paths)).toContain('api/v1');
  const url = index.paths['api/v1']?.serverRelativeURL ?? '';
  const document = await cluster.send('GET', url);
  const etag = document.headers.get('etag') ?? '';
  expect(url).toContain(etag.replaceAll('"', ''));
  expect((await cluster.send('GET', url, undefined, { 'if-none-match': etag })).status).toBe(304);
  const { paths, components } = document.json as unknown as {
    paths: Record<string, JsonObject>;
    components: { schemas: Record<string, JsonObject> };
  }; // an OpenAPI document
  const patch = paths['/api/v1/namespaces/{namespace}/endpoints/{name}']?.['patch'];
  expect(JSON.stringify(patch)).toContain('"fieldValidation"');
  const references = [...document.text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(
    (match) => match[1] ?? '',
  );
  expect(references.filter((name) => !Object.hasOwn(components.schemas, name))).toEqual([]);
});
