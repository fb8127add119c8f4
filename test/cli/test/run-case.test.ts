/** Expectations of a case: which hold, which fail, and what is shown of the difference. */

import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { worldFile } from '../../support/world-file.ts';
import { capturedRun } from '../captured-run.ts';
import { HOLDS, type JsonReport, VIRTUAL_WEB, casesOf, folder, folderWith } from './case-files.ts';

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const FAILS: Record<string, readonly [lines: string, wrong: object[]]> = {
  'an error of another object': [
    `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, labels: {broken: x}}}]
expect: {errors: [{object: {kind: EndpointSlice}, patch: 1}]}`,
    [
      { subject: 'error of patches[1]', expected: { object: { kind: 'EndpointSlice' }, patch: 1 } },
      { subject: 'error of patches[1]', actual: { object: { kind: 'Endpoints', name: 'a' }, patch: 1 } },
    ],
  ],
  'another value': [
    `${VIRTUAL_WEB}
expect: {host: [{metadata: {name: web-x-shop-x-vc, annotations: {owner: shop}}}]}`,
    [{ path: 'metadata.annotations.owner', expected: 'shop', actual: 'team-shop' }],
  ],
  'a list of another length': [
    `${VIRTUAL_WEB}
expect: {host: [{metadata: {name: web-x-shop-x-vc}, subsets: []}]}`,
    [{ path: 'subsets', expected: [], actual: [{ ports: [{ port: 80 }] }] }],
  ],
  'an object that was not created, with those that were': [
    `${VIRTUAL_WEB}
expect: {host: [{kind: Endpoints, metadata: {name: other}}]}`,
    [{ subject: 'host Endpoints other', actual: ['Endpoints host/web-x-shop-x-vc'] }],
  ],
  'an object although none was expected': [
    `${VIRTUAL_WEB}
expect: {host: []}`,
    [{ expected: null, actual: { metadata: { name: 'web-x-shop-x-vc' } } }],
  ],
  'another reason': [
    `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: kubernetes, namespace: default}}]
expect: {skipped: [{name: kubernetes, reason: no service}]}`,
    [{ path: 'reason', expected: 'no service', actual: 'never synced' }],
  ],
  'an Event that is not there': [
    `${VIRTUAL_WEB}
expect: {events: [{reason: ReferenceNotFound}]}`,
    [
      {
        subject: 'event ReferenceNotFound',
        expected: { reason: 'ReferenceNotFound' },
        actual: ['Synced'],
      },
    ],
  ],
  'an Event that says something else': [
    `${VIRTUAL_WEB}
expect: {events: [{reason: Synced, contains: elsewhere}]}`,
    [{ subject: 'event Synced', actual: ['Synced'] }],
  ],
  'an error that no case expects': [
    `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, labels: {broken: x}}}]`,
    [
      {
        subject: 'error of patches[1]',
        expected: null,
        actual: { kind: 'runtime', path: 'metadata.labels.broken' },
      },
    ],
  ],
  'a reverse that does not undo the forward': [
    `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, annotations: {owner: nobody}}}]
roundTrip: true`,
    [{ subject: 'round trip Endpoints default/a', expected: 'nobody', actual: 'none' }],
  ],
};

describe('an expectation', () => {
  const [holding, failing] = [Object.entries(HOLDS), Object.entries(FAILS)];
  let mismatches: JsonReport['cases'][0]['mismatches'][] = [];

  // All in one run: each run starts a sandbox.
  beforeAll(async () => {
    const texts = [...holding.map(([, lines]) => lines), ...failing.map(([, [lines]]) => lines)];
    const { out, err } = await capturedRun(['test', folderWith(casesOf(texts)), '-o', 'json']);
    if (err !== '') throw new Error(err);
    mismatches = (JSON.parse(out) as JsonReport).cases.map((one) => one.mismatches);
  });

  test.each(holding.map(([name], index) => [name, index] as const))('holds: %s', (_, index) => {
    expect(mismatches[index]).toEqual([]);
  });

  test.each(failing.map(([name, [, wrong]], index) => [name, index, wrong] as const))(
    'fails with both sides: %s',
    (_, index, wrong) => {
      expect(mismatches[holding.length + index]).toMatchObject(wrong);
    },
  );
});

test('roundTrip does not compare lists of which a patch without a way back removes elements', async () => {
  const cases = worldFile('values/roundtrip/r.endpoint-syncer-test.yaml');
  const { code, out } = await capturedRun(['test', cases]);
  expect(out).toContain('1 of 1 cases passed');
  expect(code).toBe(0);
});
