/** The callers of the cases in the group auth, which describes them in words. */

import { expect } from 'vitest';
import { differences, Run, type ManagementCase } from './case-runner.ts';
import { textAt } from '../cases.ts';
import type { RawClient } from '../contract/raw-client.ts';
import { startComposed, type Composed } from './composed-api.ts';

export type Teller = (item: ManagementCase, dataDir: string) => Promise<void>;

const ANYBODY: Record<string, (api: Composed) => Promise<RawClient>> = {
  'no credentials': (api) => Promise.resolve(api.as(undefined)),
  'an unknown token': (api) => Promise.resolve(api.as('t-mallory')),
  'a user without any permission': async (api) => (await api.key('no', { user: 'nobody', scope: {} })).client,
  'a key whose scope is read-only': async (api) => {
    const scope = { rules: [{ verbs: ['get', 'list', 'watch'] }] };
    return (await api.key('reader', { user: 'ro', scope })).client;
  },
};

/** A scope is what takes every permission from a user here, and the answer says so: its reason follows the words of the case. */
const REASON_FOLLOWS = ['authz-list', 'authz-create', 'authz-delete-missing'];

const tell: Teller = async (item, dataDir) => {
  await using api = await startComposed({ dataDir });
  const client = await ANYBODY[item.request.as ?? '']?.(api);
  if (client === undefined) throw new Error(`nobody is "${item.request.as}"`);
  const run = new Run(client);
  const answer = await run.send(item.request);
  if (!REASON_FOLLOWS.includes(item.id)) {
    expect(differences(answer, item, run)).toEqual([]);
    return;
  }
  const { message = '', ...expected } = item.expect;
  expect(differences(answer, { ...item, expect: expected }, run)).toEqual([]);
  expect(textAt(answer.json ?? {}, 'message')).toMatch(
    new RegExp(`^${escaped(message)}: access key scope `, 'u'),
  );
};

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/gu, String.raw`\$&`);
}

export const AUTH_CASES: Record<string, Teller> = {
  'auth-none': tell,
  'auth-bad': tell,
  'auth-query-token': tell,
  'auth-version-anonymous': tell,
  'authz-list': tell,
  'authz-create': tell,
  'authz-delete-missing': tell,
  'authz-reason': tell,
};
