/** The rules of metadata that the recorded contract does not reach. */

import { describe, expect, test } from 'vitest';
import type { JsonArray, JsonObject } from '../../src/base/json.ts';
import {
  duplicateOwners,
  validateMetadata,
  validateMetadataUpdate,
  withoutCollectorFinalizers,
} from '../../src/apiserver/metadata.ts';
import { subdomainProblem } from '../../src/kube/names.ts';

const RULES = { checkName: subdomainProblem, isNamespaced: true, needsQualifiedFinalizers: true };

/** The fields with an error, and what it says. */
function problemsOf(metadata: JsonObject, rules: Partial<typeof RULES> = {}): string[] {
  const complete = { name: 'a', namespace: 'n', ...metadata };
  return validateMetadata(complete, { ...RULES, ...rules }).map(
    ({ field, message }) => `${field}: ${message}`,
  );
}

function owner(more: JsonObject = {}): JsonObject {
  return { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u', ...more };
}

describe('valid are', () => {
  test.each<[string, JsonObject]>([
    ['a name that is generated from a prefix that ends in a dash', { generateName: 'a-' }],
    ['an upper-case prefix of an annotation', { annotations: { 'Example.COM/Key': '' } }],
    ['annotations of exactly 256 KiB', { annotations: { a: 'x'.repeat(256 * 1024 - 1) } }],
    [
      'several owners of which one is the controller',
      { ownerReferences: [owner({ controller: true }), owner({ controller: false })] },
    ],
    [
      'an Event of another group as an owner',
      { ownerReferences: [owner({ apiVersion: 'a.example/v1', kind: 'Event' })] },
    ],
    ['finalizers of Kubernetes without a prefix', { finalizers: ['kubernetes', 'orphan'] }],
    ['a finalizer of the garbage collector', { finalizers: ['foregroundDeletion'] }],
  ])('%s', (_, metadata) => {
    expect(problemsOf(metadata)).toEqual([]);
  });

  test('unqualified finalizers, and no namespace, where the kind allows it', () => {
    const rules = { needsQualifiedFinalizers: false, isNamespaced: false };
    expect(problemsOf({ namespace: '', finalizers: ['hold'] }, rules)).toEqual([]);
  });
});

describe('invalid are', () => {
  test.each<[string, JsonObject, RegExp]>([
    [
      'a prefix of a generated name',
      { generateName: 'a.' },
      /^metadata\.generateName: Invalid value: "a\.": a lowercase/u,
    ],
    ['no namespace', { namespace: '' }, /^metadata\.namespace: Required value$/u],
    [
      'annotations above 256 KiB, counted in bytes',
      { annotations: { a: 'ä'.repeat(128 * 1024) } },
      /^metadata\.annotations: Too long: may not be more than 262144 bytes$/u,
    ],
    [
      'two controllers',
      { ownerReferences: [owner({ controller: true }), owner({ name: 'q', controller: true })] },
      /Only one reference can have Controller set to true\. .* for Pod\/p and Pod\/q$/u,
    ],
    [
      'an Event as an owner',
      { ownerReferences: [owner({ kind: 'Event' })] },
      /^metadata\.ownerReferences\[0\]: Invalid value: .*: \/v1, Kind=Event is disallowed from being an owner$/u,
    ],
    [
      'an owner of a version with two slashes',
      { ownerReferences: [owner({ apiVersion: 'a/b/c' })] },
      /^metadata\.ownerReferences\[0\]\.apiVersion: Invalid value: "a\/b\/c": must be <group>\/<version> or <version>$/u,
    ],
    [
      'an owner without a uid, by its place',
      { ownerReferences: [owner({}), owner({ uid: '' })] },
      /^metadata\.ownerReferences\[1\]\.uid: Required value: must not be empty$/u,
    ],
    [
      'both finalizers of the garbage collector',
      { finalizers: ['orphan', 'foregroundDeletion'] },
      /^metadata\.finalizers: Invalid value: \[\]string\{"orphan", "foregroundDeletion"\}: .* cannot be both set$/u,
    ],
    [
      'an unqualified finalizer, by its place',
      { finalizers: ['a.b/c', 'hold'] },
      /^metadata\.finalizers\[1\]: Invalid value: "hold": name is neither/u,
    ],
  ])('%s', (_, metadata, problem) => {
    expect(problemsOf(metadata)).toEqual([expect.stringMatching(problem)]);
  });
});

describe('an update', () => {
  const previous = { name: 'a', namespace: 'n', uid: 'u', finalizers: ['a.b/c', 'a.b/d'] };
  const deleting = { ...previous, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 5 };

  test.each<[string, before: JsonObject, next: JsonObject, problems: string[]]>([
    ['removes and reorders finalizers during the deletion', deleting, { finalizers: ['a.b/d'] }, []],
    ['adds a finalizer before the deletion', previous, { finalizers: ['a.b/e'] }, []],
    [
      'adds a finalizer during the deletion',
      deleting,
      { finalizers: ['a.b/c', 'a.b/e'] },
      [
        'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"a.b/e"}',
      ],
    ],
    [
      'ends the deletion',
      deleting,
      { deletionTimestamp: null, deletionGracePeriodSeconds: null },
      [
        'metadata.deletionTimestamp: Invalid value: null: field is immutable',
        'metadata.deletionGracePeriodSeconds: Invalid value: null: field is immutable',
      ],
    ],
    ['changes the uid', previous, { uid: 'v' }, ['metadata.uid: Invalid value: "v": field is immutable']],
  ])('%s', (_, before, next, problems) => {
    const errors = validateMetadataUpdate({ ...before, ...next }, before);
    expect(errors.map(({ field, message }) => `${field}: ${message}`)).toEqual(problems);
  });
});

test('uids of several owner references are named once', () => {
  const ownerReferences: JsonArray = ['u', 'v', 'u', 'w', 'u', 'w'].map((uid) => owner({ uid }));
  expect(duplicateOwners({ ownerReferences })).toEqual(['u', 'w']);
});

test('the garbage collector has finished with its own finalizers alone', () => {
  const finalizers = ['a.b/orphan', 'orphan', 'kubernetes', 'foregroundDeletion'];
  expect(withoutCollectorFinalizers(finalizers)).toEqual(['a.b/orphan', 'kubernetes']);
});
