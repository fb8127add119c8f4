/** A message names the number that was sent, no integer is stored as another, and no text that looks like a number is lost. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeBody } from '../../../src/apiserver/schema/decode.ts';
import { parseJsonText } from '../../../src/apiserver/schema/json-text.ts';
import { META_TYPES, TypeTable } from '../../../src/apiserver/schema/object-schema.ts';
import { objectField, text } from '../../../src/base/json.ts';
import { KEYS_PATH, MINIMAL, startKeyServer, type KeyServer } from './key-server.ts';

const LONG = ['9007199254740995', '9223372036854775807', '-9007199254740995', '-9223372036854775808'];
/** No int64. */
const NONE = [
  '9223372036854775808',
  '123456789012345678901234567890',
  '1e400',
  '1e17',
  '9007199254740993.0',
  '1.50',
];
const NUMBERS = [...LONG, ...NONE];

let api: KeyServer;

beforeAll(async () => {
  api = await startKeyServer();
  await api.create('stored');
});

afterAll(async () => {
  await api[Symbol.asyncDispose]();
});

interface Sent {
  readonly status: number;
  readonly message: string;
}

async function send(method: string, path: string, type: string, body: string): Promise<Sent> {
  const { status, json } = await api.client.send({ method, path, headers: { 'content-type': type }, body });
  return { status, message: text(json ?? {}, 'message') };
}

describe.each(NUMBERS)('%s', (number) => {
  const marked = JSON.stringify({ metadata: { name: 'k' }, spec: { ...MINIMAL, ttl: 1 } }).replace(
    '"ttl":1',
    `"ttl":${number}`,
  );

  test('as the ttl of a new key', async () => {
    const sent = await send('POST', KEYS_PATH, 'application/json', marked);
    expect(sent.message).toContain(number);
    expect(sent.status).toBe(LONG.includes(number) ? 422 : 400);
  });

  test('in a patch', async () => {
    const body = `{"spec":{"ttl":${number}}}`;
    const sent = await send('PATCH', `${KEYS_PATH}/stored`, 'application/merge-patch+json', body);
    expect(sent.message).toContain(number);
  });

  test('as the overlap of a rotation', async () => {
    const body = `{"overlapSeconds":${number}}`;
    const sent = await send('POST', `${KEYS_PATH}/stored/rotate`, 'application/json', body);
    expect(sent.message).toContain(number);
  });

  // A negative one becomes 1.
  test.skipIf(number.startsWith('-'))('as the grace period of a deletion', async () => {
    const body = `{"gracePeriodSeconds":${number}}`;
    const sent = await send('DELETE', `${KEYS_PATH}/stored`, 'application/json', body);
    expect(sent.message).toContain(number);
    if (!/^\d+$/.test(number)) return;
    const path = `${KEYS_PATH}/stored?gracePeriodSeconds=${number}`;
    expect((await send('DELETE', path, 'application/json', '')).message).toContain(number);
  });
});

test.each(LONG)('%s as YAML', async (number) => {
  const body = `metadata: {name: k}\nspec: {displayName: D, type: User, user: u, ttl: ${number}}\n`;
  const sent = await send('POST', KEYS_PATH, 'application/yaml', body);
  expect(sent.status).toBe(422);
  expect(sent.message).toContain(number);
});

test('a text of a YAML body that nearly is a number is stored as it is, or refused', async () => {
  const part = fc.constantFrom('.', 'e', 'E', '+', '-', '_', '0', '1', '9', 'x', 'o', 'inf', 'nan', '400');
  const plain = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(''));
  // A dash begins a list, and a document.
  const texts = plain.filter((one) => !/^-+$/u.test(one));
  let at = 0;
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.constantFrom('.', '1e400', '-1e999'), texts), async (description) => {
      const spec = `{displayName: D, type: User, user: u, ttl: 0, description: ${description}}`;
      const body = `metadata: {name: text-${++at}}\nspec: ${spec}\n`;
      const { status, json } = await api.client.send({
        method: 'POST',
        path: KEYS_PATH,
        headers: { 'content-type': 'application/yaml' },
        body,
      });
      const stored = text(objectField(json ?? {}, 'spec'), 'description');
      expect([[201, description], 400]).toContainEqual(status === 201 ? [status, stored] : status);
    }),
  );
});

test('a version that is not served is named as it was sent', async () => {
  const body = JSON.stringify({ apiVersion: 'management.platform.sh/v2', kind: 'OwnedAccessKey' });
  const sent = await send('POST', KEYS_PATH, 'application/json', body);
  expect(sent.status).toBe(400);
  expect(sent.message).toMatch(
    /^OwnedAccessKey in version "v2" cannot be handled as a OwnedAccessKey: no kind /,
  );
});

describe('any number for an integer', () => {
  const schema = new TypeTable([META_TYPES]).get('meta.Condition');
  const digits = fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n }).map(String);
  const double = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value));

  /** What is stored, or the message. */
  function outcome(number: string): string {
    const parsed = parseJsonText(`{"type":"T","status":"True","observedGeneration":${number}}`);
    const kind = { kind: 'Condition', version: 'v1', schema };
    try {
      return JSON.stringify(decodeBody(kind, parsed, 'Strict', () => undefined)['observedGeneration'] ?? 0);
    } catch (error) {
      return String(error);
    }
  }

  test('is stored with all its digits, or refused with them', () => {
    fc.assert(
      fc.property(fc.oneof(digits, double), (number) => {
        const isSafe = Number.isSafeInteger(Number(number));
        expect([isSafe ? String(Number(number)) : number, `number ${number} into`]).toContain(
          outcome(number).match(/^-?\d+$|number \S+ into/)?.[0],
        );
      }),
    );
  });
});
