/** Names, labels and contents of the Secrets of the store. */

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  SecretNames,
  decodeSecret,
  encodeSecret,
} from '../../../../src/apiserver/storage/secrets/secret-codec.ts';
import { type JsonObject, isJsonObject } from '../../../../src/base/json.ts';
import { anyText } from '../../../support/any-text.ts';

const names = new SecretNames('main');

const text = fc.oneof(
  fc.constantFrom(
    '',
    'a',
    'A',
    'a.b',
    'a-b',
    'sha256.a',
    '__proto__',
    'ownedaccesskeys.management.platform.sh',
  ),
  fc.string({ maxLength: 300 }),
  anyText(20),
);
const anyKey = fc.record({ resource: text, namespace: text, name: text });
const SUBDOMAIN = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const LABEL = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

describe('names and labels', () => {
  test('are valid for any key', () => {
    fc.assert(
      fc.property(anyKey, text, (key, store) => {
        const own = new SecretNames(store);
        for (const name of [own.object(key), own.notes(key.resource, 3)]) {
          expect(name).toMatch(SUBDOMAIN);
          expect(name.length).toBeLessThanOrEqual(253);
        }
        for (const value of Object.values(own.objectLabels(key))) expect(value).toMatch(LABEL);
      }),
    );
  });

  test('differ by key, store and kind of content', () => {
    fc.assert(
      fc.property(anyKey, anyKey, (a, b) => {
        const isSame = a.resource === b.resource && a.namespace === b.namespace && a.name === b.name;
        expect(names.object(a) === names.object(b)).toBe(isSame);
        expect(names.object(a)).not.toBe(new SecretNames('other').object(a));
        expect(names.object(a)).not.toBe(names.notes(a.name, 0));
        const areSameLabels = JSON.stringify(names.objectLabels(a)) === JSON.stringify(names.objectLabels(b));
        expect(areSameLabels).toBe(a.resource === b.resource && a.namespace === b.namespace);
      }),
    );
  });

  test('are readable', () => {
    const key = { resource: 'ownedaccesskeys.management.platform.sh', namespace: '', name: 'ci-deployer' };
    expect(names.object(key)).toMatch(/^endpoint-syncer\.ownedaccesskeys\.ci-deployer\.[a-z2-7]{32}$/);
    expect(names.objectSelector({ resource: key.resource })).toBe(
      'app.kubernetes.io/managed-by=endpoint-syncer,endpoint-syncer/store=main,endpoint-syncer/part=objects,' +
        'endpoint-syncer/resource=ownedaccesskeys.management.platform.sh',
    );
  });
});

describe('objects in Secrets', () => {
  test('are decoded as they were encoded', async () => {
    await fc.assert(
      fc.asyncProperty(anyKey, fc.jsonValue(), async (key, content) => {
        const value = JSON.parse(
          `{"__proto__": {"x": 1}, "content": ${JSON.stringify(content)}}`,
        ) as JsonObject;
        const secret = await encodeSecret(names, { key, value, writeId: 'w' });
        secret.metadata.resourceVersion = '7';
        const decoded = decodeSecret(names, secret);
        expect(decoded).toMatchObject({ state: 'held', writeId: 'w' });
        const entry = decoded.state === 'held' ? decoded.entry : undefined;
        expect(entry?.key).toEqual(key);
        expect(JSON.stringify(entry?.value)).toBe(JSON.stringify(value));
      }),
      { numRuns: 50 },
    );
  });

  test('that are large are compressed, and rejected when that does not suffice', async () => {
    const key = { resource: 'things', namespace: '', name: 'large' };
    const large = { text: 'endpoint '.repeat(200_000) };
    const secret = await encodeSecret(names, { key, value: large, writeId: 'w' });
    const data = isJsonObject(secret['data']) ? secret['data']['object'] : undefined;
    expect(JSON.stringify(data).length).toBeLessThan(20_000);
    secret.metadata.resourceVersion = '7';
    expect(decodeSecret(names, secret)).toMatchObject({ state: 'held', entry: { value: large } });
    const noise = randomBytes(1_200_000).toString('base64');
    const tooLarge = encodeSecret(names, { key, value: { noise }, writeId: 'w' });
    await expect(tooLarge).rejects.toMatchObject({ code: 413 });
    await expect(tooLarge).rejects.toThrow('"large" is too large');
  });

  test('need a server whose resourceVersions are numbers', async () => {
    const key = { resource: 'things', namespace: '', name: 'a' };
    const secret = await encodeSecret(names, { key, value: {}, writeId: 'w' });
    secret.metadata.resourceVersion = 'v1-abc';
    expect(() => decodeSecret(names, secret)).toThrow('the store needs integers');
  });
});
