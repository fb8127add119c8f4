/** Lists in pages: smaller ones if one is too large, and larger ones if the state that they are from is forgotten in between. */

import { expect, test } from 'vitest';
import { ResponseTooLargeError } from '../../src/kube/client/exchange.ts';
import { listPages } from '../../src/kube/list-pages.ts';
import { SECRETS, type KubeObject } from '../../src/kube/object.ts';
import { failure } from '../../src/kube/status-error.ts';

type Client = Parameters<typeof listPages>[0];

const nameOf = ({ metadata }: KubeObject): string => metadata.name;

test.for<[number, string[]]>([
  [1000, ['0-100', '100-200', '200-250']],
  [
    30,
    ['0-25', '25-50', '50-75', '75-100', '100-125', '125-150', '150-175', '175-200', '200-225', '225-250'],
  ],
])('pages of which %i objects are too large are listed in smaller ones', async ([tooMany, expected]) => {
  const pages: string[] = [];
  const client: Client = {
    async list(_, { limit = 0, continueToken = '' } = {}) {
      if (limit > tooMany) throw new ResponseTooLargeError('GET', 'is too large');
      const from = Number(continueToken);
      const to = Math.min(250, from + limit);
      pages.push(`${from}-${to}`);
      const items = Array.from({ length: to - from }, (__, at) => ({ metadata: { name: `x${from + at}` } }));
      return { items, malformed: [], resourceVersion: '1', continueToken: to < 250 ? String(to) : '' };
    },
  };
  const names = await listPages(client, SECRETS, { limit: 100 }, nameOf);
  expect(pages).toEqual(expected);
  expect(names).toEqual(Array.from({ length: 250 }, (_, at) => `x${at}`));
});

test('one object that is too large is an error', async () => {
  const client: Client = { list: () => Promise.reject(new ResponseTooLargeError('GET', 'is too large')) };
  await expect(listPages(client, SECRETS, {}, nameOf)).rejects.toThrow(ResponseTooLargeError);
});

/** A server that has forgotten the state of a first page with fewer objects than these. */
function forgetful(enough: number): { readonly client: Client; readonly limits: (number | undefined)[] } {
  const limits: (number | undefined)[] = [];
  const client: Client = {
    async list(_, { limit = 0, continueToken = '' } = {}) {
      limits.push(limit);
      if (continueToken === 'old') throw failure(410, 'Expired', 'the state is gone');
      const items = [{ metadata: { name: `of-${limit}` } }];
      return { items, continueToken: limit < enough ? 'old' : '', resourceVersion: '1' };
    },
  };
  return { client, limits };
}

test('pages whose state the server has forgotten are read again, in larger ones', async () => {
  const { client, limits } = forgetful(2000);
  expect(await listPages(client, SECRETS, {}, nameOf)).toEqual(['of-2000']);
  expect(limits).toEqual([500, 500, 2000]);
});

test('a server that forgets every state is an error', async () => {
  const { client, limits } = forgetful(Infinity);
  await expect(listPages(client, SECRETS, {}, nameOf)).rejects.toThrow('the state is gone');
  expect(limits).toEqual([500, 500, 2000, 2000, 8000, 8000]);
});
