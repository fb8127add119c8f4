/** The callers of the cases in the group auth, which the cases describe as text. */

import { expect } from 'vitest';
import { differences, Run, type ManagementCase } from './case-runner.ts';
import { textAt } from '../support/cases.ts';
import type { RawClient } from '../contract/raw-client.ts';
import { startComposed, type Composed } from './composed-api.ts';

export type CaseTest = (item: ManagementCase, dataDir: string) => Promise<void>;

const CALLERS: Record<string, (api: Composed) => Promise<RawClient>> = {
  'no credentials': (api) => Promise.resolve(api.as(undefined)),
  'an unknown token': (api) => Promise.resolve(api.as('t-mallory')),
  // The cases expect this name.
  'a user without any permission': async (api) => (await api.key('no', { user: 'nobody', scope: {} })).client,
  'a key whose scope is read-only': async (api) => {
    const scope = { rules: [{ verbs: ['get', 'list', 'watch'] }] };
    return (await api.key('reader', { user: 'ro', scope })).client;
  },
};

/** Here a user without permissions has an empty scope, and the response says so: its reason follows the message of the case. */
const REASON_FOLLOWS = ['authz-list', 'authz-create', 'authz-delete-missing'];

const runCase: CaseTest = async (item, dataDir) => {
  await using api = await startComposed({ dataDir });
  const client = await CALLERS[item.request.as ?? '']?.(api);
  if (client === undefined) throw new Error(`no caller is called "${item.request.as}"`);
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

export const AUTH_CASES: Record<string, CaseTest> = {
  'auth-none': runCase,
  'auth-bad': runCase,
  'auth-query-token': runCase,
  'auth-version-anonymous': runCase,
  'authz-list': runCase,
  'authz-create': runCase,
  'authz-delete-missing': runCase,
  'authz-reason': runCase,
};
