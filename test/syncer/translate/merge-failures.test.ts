/** Where something flows back, the patches run forward twice. One that fails in the first run alone, as when the sandbox is stopped for a moment. */

import { describe, expect, test } from 'vitest';
import { type JsonObject, valueAt } from '../../../src/base/json.ts';
import { asJson, asObject, SERVICES, type KubeObject } from '../../../src/kube/object.ts';
import { createServiceKind } from '../../../src/syncer/kinds/services.ts';
import { withValueAt } from '../../../src/syncer/translate/paths.ts';
import type { ConcretePath } from '../../../src/syncer/translate/types.ts';
import { annotationOf, copyOf, LOST, merge, noPatches, touch, type TestPatches } from './merge-setup.ts';
import { endpoints } from './setup.ts';

const HOSTNAME: ConcretePath = ['subsets', 0, 'addresses', 0, 'hostname'];
const PATHS: readonly ConcretePath[] = [
  ['metadata', 'annotations', 'k'],
  ['metadata', 'labels', 'k'],
  HOSTNAME,
];

function withText(object: KubeObject, path: ConcretePath, text: string): KubeObject {
  return asObject(withValueAt(asJson(object), path, text) as JsonObject); // no path is that of the whole object
}

function changed(object: KubeObject, change: (text: string) => string, except?: ConcretePath): KubeObject {
  return PATHS.reduce((root, path) => {
    const old = path === except ? undefined : valueAt(asJson(root), path);
    return typeof old === 'string' ? withText(root, path, change(old)) : root;
  }, object);
}

/** Each of the paths is another patch. `failing`: in its first run forward. */
function patches(failing?: ConcretePath): TestPatches {
  let runs = 0;
  return {
    ...noPatches,
    twoWayPaths: () => [HOSTNAME],
    forward: (object) => changed(object, (text) => `t-${text}`, runs === 0 ? failing : undefined),
    reverse: (object) => changed(object, (text) => text.replace(/^t-/, '')),
    failures(direction) {
      if (failing === undefined || direction !== 'forward' || runs++ > 0) return undefined;
      return {
        covers: (path) => path.length === failing.length && path.every((step, at) => step === failing[at]),
        locate: (object) => (valueAt(object, failing) === undefined ? [] : [failing]),
      };
    },
  };
}

const VIRTUAL = endpoints(
  { annotations: { k: 'v' }, labels: { k: 'v' } },
  { subsets: [{ addresses: [{ ip: '10.0.0.1', hostname: 'v' }], ports: [{ port: 80 }] }] },
);

test.each(PATHS.map((path) => ({ path, of: path.join('.') })))(
  'what fails in the first run is kept on both sides and reported: $of',
  async ({ path }) => {
    const copy = await copyOf(VIRTUAL, patches());
    const edited = withText(copy, path, 't-host');
    const host = touch(edited, { annotations: { plain: 'from the host' } });
    const pair = { virtual: VIRTUAL, host };

    const merged = await merge({ ...pair, patches: patches(path) });
    const sides = [merged.virtual, merged.host].map(asJson);
    expect(sides.map((side) => valueAt(side, path))).toEqual(['v', 't-host']);
    expect(merged.failed).toHaveLength(1);
    expect(merged.virtual.metadata.annotations).toMatchObject({ plain: 'from the host' });

    const again = await merge({ virtual: merged.virtual, host: merged.host, patches: patches() });
    expect([again.virtual, again.host].map((side) => valueAt(asJson(side), path))).toEqual([
      'host',
      't-host',
    ]);
    expect(again.failed).toEqual([]);
  },
);

test.each(PATHS.slice(0, 2).map((path) => ({ path, of: path.join('.') })))(
  'an echo that the first run does not show, for its patch fails, does not grow: $of',
  async ({ path }) => {
    const copy = await copyOf(VIRTUAL, patches());
    const echoed = PATHS.slice(0, 2).reduce((object, each) => withText(object, each, 't-v'), VIRTUAL);
    const memory = { agreed: { virtual: VIRTUAL, host: copy }, restoresEchoes: true };
    const pair = { virtual: echoed, host: copy, memory };

    const merged = await merge({ ...pair, patches: patches(path) });
    expect(valueAt(asJson(merged.host), path)).toBe('t-v');
    expect(merged.failed).toHaveLength(1);

    const again = await merge({ ...pair, ...merged, patches: patches() });
    expect([again.virtual, again.host].map((side) => valueAt(asJson(side), path))).toEqual(['v', 't-v']);
  },
);

const [ANNOTATION = []] = PATHS;
const EACH: readonly string[] = ['of the first copy', 'of each copy'];

test.each(PATHS.flatMap((path) => EACH.map((lost) => ({ path, of: path.join('.'), lost }))))(
  'where its patch fails and the record $lost is lost, $of is still this program’s, and its removal is carried to the host',
  async ({ path, lost }) => {
    const withoutRecord = (object: KubeObject) => touch(object, { annotations: LOST });
    const strip = lost === 'of each copy' ? withoutRecord : (object: KubeObject) => object;
    const removed = endpoints({}, { subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }] });
    const isThere = (object: KubeObject) => valueAt(asJson(object), path) !== undefined;

    const copy = withoutRecord(await copyOf(VIRTUAL, patches()));
    const first = await merge({ virtual: VIRTUAL, host: copy, patches: patches(path) });
    expect([first.failed.length, isThere(first.host)]).toEqual([1, true]);
    // The removal, too, comes while the patch fails.
    const second = await merge({ virtual: removed, host: strip(first.host), patches: patches(path) });
    const last = await merge({ virtual: removed, host: strip(second.host), patches: patches() });
    expect([last.virtual, last.host].map(isThere)).toEqual([false, false]);
  },
);

test('where its patch fails, an annotation that only the host has flows back later, as without a failure', async () => {
  const removed = touch(VIRTUAL, { annotations: { k: undefined } });
  const copy = touch(await copyOf(removed, patches()), { annotations: { ...LOST, k: 't-host' } });
  const failed = await merge({ virtual: removed, host: copy, patches: patches(ANNOTATION) });
  const last = await merge({ ...failed, patches: patches() });
  expect([last.virtual, last.host].map((side) => annotationOf(side, 'k'))).toEqual(['host', 't-host']);
});

describe.each([['spec'], ['spec', 'loadBalancerIP']])('where a patch of %s.%s fails', (...failing) => {
  const path = failing.filter((step) => step !== undefined);
  const { content } = createServiceKind({
    allow: ['loadBalancerIP'],
    hasSyncedEndpoints: () => true,
    neverCopied: () => undefined,
  });
  const balanced = (spec: JsonObject): KubeObject =>
    endpoints({}, { subsets: undefined, spec: { type: 'LoadBalancer', ports: [{ port: 80 }], ...spec } });
  const failingOnce = (): TestPatches => ({
    ...patches(path),
    twoWayPaths: () => [],
    forward: (object) => object,
  });
  const pair = { kind: SERVICES, content };

  test.each(['is there', 'is lost'])(
    'while the record %s, an address that this program wrote is removed with that of the virtual side',
    async (record) => {
      const [virtual, removed] = [balanced({ loadBalancerIP: '192.0.2.1' }), balanced({})];
      const copy = (await merge({ ...pair, virtual, host: undefined })).host;
      const host = record === 'is lost' ? touch(copy, { annotations: LOST }) : copy;
      const failed = await merge({ ...pair, virtual, host, patches: failingOnce() });
      const last = await merge({ ...pair, virtual: removed, host: failed.host });
      const addresses = [failed, last].map((one) => valueAt(asJson(one.host), ['spec', 'loadBalancerIP']));
      expect(addresses).toEqual(['192.0.2.1', undefined]);
    },
  );
});
