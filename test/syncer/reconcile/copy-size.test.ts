/** Objects that are too large for the host, and those that are worked on in several turns of the event loop. */

import { describe, expect, test } from 'vitest';
import { TerminalError } from '../../../src/base/errors.ts';
import type { KubeObject, ObjectMeta } from '../../../src/kube/object.ts';
import { checkCopySize, pausesFor } from '../../../src/syncer/reconcile/copy.ts';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { build } from '../patch/build.ts';
import { Budget } from '../../../src/expressions/local/budget.ts';
import { ownForge } from './own-forge.ts';

const KIB = 1024;

function endpoints(addresses: number, metadata: Partial<ObjectMeta> = {}): KubeObject {
  const list = Array.from({ length: addresses }, (_, at) => ({
    ip: `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`,
    hostname: `h${at}`,
  }));
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'web', namespace: 'default', uid: 'u1', resourceVersion: '7', ...metadata },
    subsets: [{ addresses: list, ports: [{ port: 80, protocol: 'TCP' }] }],
  };
}

/** So many bytes in keys of ten characters and values of as many. */
function map(bytes: number, character = 'v'): Record<string, string> {
  const perKey = 10 + Buffer.byteLength(character) * 10;
  return Object.fromEntries(
    Array.from({ length: Math.floor(bytes / perKey) }, (_, at) => [
      `k${String(at).padStart(9, '0')}`,
      character.repeat(10),
    ]),
  );
}

const NONE = /^$/;

/** '' if there is none. */
function problemOf(object: KubeObject): string {
  try {
    checkCopySize(object);
    return '';
  } catch (error) {
    if (error instanceof TerminalError) return error.message;
    throw error;
  }
}

describe('what no host accepts is refused', () => {
  test.each<[what: string, object: KubeObject, problem: RegExp]>([
    ['an object of common size', endpoints(1000), NONE],
    ['the largest one', endpoints(60_000), NONE],
    ['a larger one', endpoints(90_000), /^it has more than 3145728 bytes/],
    ['a text as large', endpoints(1, { annotations: { a: 'x'.repeat(200 * KIB) } }), NONE],
    ['a larger text', endpoints(1, { annotations: { a: 'x'.repeat(256 * KIB) } }), /^its annotations/],
    ['annotations', endpoints(1, { annotations: map(250 * KIB) }), NONE],
    ['more annotations', endpoints(1, { annotations: map(257 * KIB) }), /^its annotations have more/],
    ['annotations in bytes', endpoints(1, { annotations: map(257 * KIB, 'ä') }), /^its annotations have/],
    ['as few characters', endpoints(1, { annotations: map(257 * KIB, '€') }), /^its annotations have/],
    ['labels', endpoints(1, { labels: map(250 * KIB) }), NONE],
    ['more labels', endpoints(1, { labels: map(257 * KIB) }), /^its labels have more than 262144 bytes/],
    [
      'a list that an API server keeps',
      endpoints(1, { managedFields: [{ manager: 'x'.repeat(4e6), operation: 'Update' }] }),
      NONE,
    ],
  ])('%s', (_what, object, problem) => {
    expect(problemOf(object)).toMatch(problem);
    // Only an object that has pauses is measured.
    expect(problem === NONE || pausesFor(object) !== undefined).toBe(true);
  });
});

test.each([
  [10, false],
  [1000, false],
  [5000, true],
])('a copy of %i addresses has pauses: %s', (addresses, hasPauses) => {
  expect(pausesFor(endpoints(addresses)) !== undefined).toBe(hasPauses);
});

describe('an object of 2.5 MB', () => {
  const target = { namespace: 'ns', name: 'web-x-default-x-vc' };
  const MODES: Readonly<Record<string, PatchConfig[]>> = {
    'without patches': [],
    'with a patch of each address': [{ path: 'subsets[*].addresses[*].hostname', expression: 'value + "x"' }],
    'with a patch of each address, in both directions': [
      {
        path: 'subsets[*].addresses[*].hostname',
        expression: 'value + "x"',
        reverseExpression: 'value.slice(0, -1)',
      },
    ],
    'with an annotation from the host': [{ path: 'metadata.annotations.zone', reverseExpression: 'value' }],
  };

  test.each(Object.entries(MODES))('%s is merged in several turns, and equally', async (_mode, patches) => {
    const { pipeline } = build(patches);
    const forge = ownForge(pipeline);
    const virtual = endpoints(50_000);
    const before = await turnsOf(() =>
      forge.fresh({ virtual, target, host: undefined, budget: new Budget() }),
    );
    expect(before.turns).toBeGreaterThanOrEqual(3);
    const { host } = before.result;
    const again = await turnsOf(() =>
      forge.merged({
        virtual,
        target,
        host: { ...host, metadata: { ...host.metadata, resourceVersion: '9' } },
        budget: new Budget(),
      }),
    );
    expect(again.turns).toBeGreaterThanOrEqual(4);
    expect(again.result).toMatchObject({ host: undefined, virtual: undefined, correctsDrift: false });
  });

  test('one of common size is merged in one turn', async () => {
    const { pipeline } = build([]);
    const forge = ownForge(pipeline);
    const { turns } = await turnsOf(() =>
      forge.fresh({ virtual: endpoints(1000), target, host: undefined, budget: new Budget() }),
    );
    expect(turns).toBe(0);
  });
});

/** How many turns others had until it was done. */
async function turnsOf<T>(work: () => Promise<T>): Promise<{ readonly turns: number; readonly result: T }> {
  let [turns, isDone] = [0, false];
  const other = (): void => {
    if (isDone) return;
    turns += 1;
    setImmediate(other);
  };
  setImmediate(other);
  const result = await work();
  isDone = true;
  return { turns, result };
}
