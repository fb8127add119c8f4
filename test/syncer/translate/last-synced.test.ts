/** Encoding, size limit and robustness of the sync record. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { LAST_SYNCED } from '../../../src/syncer/translate/bookkeeping.ts';
import {
  decodeLastSynced,
  encodeLastSynced,
  NO_ROOM,
  recordedKinds,
  recordedRevision,
  shortHash,
  type SyncedEntry,
  withRevision,
} from '../../../src/syncer/translate/last-synced.ts';
import { valueAt, type JsonValue } from '../../../src/base/json.ts';
import { withValueAt } from '../../../src/syncer/translate/paths.ts';
import type { ConcretePath } from '../../../src/syncer/translate/types.ts';
import { merge, noPatches, type TestPatches } from './merge-setup.ts';
import { endpoints } from './setup.ts';

const hashed = fc.string().map(shortHash);
const entry: fc.Arbitrary<SyncedEntry> = fc
  .record({
    virtual: fc.option(hashed, { nil: undefined }),
    host: fc.option(hashed, { nil: undefined }),
    isFromHost: fc.boolean(),
    incoming: fc.option(
      fc.record({
        virtual: fc.option(hashed, { nil: undefined }),
        earlier: fc.array(fc.option(hashed, { nil: undefined }), { maxLength: 2 }),
      }),
      { nil: undefined },
    ),
  })
  .filter(
    ({ virtual, host, incoming }) => virtual !== undefined || host !== undefined || incoming !== undefined,
  )
  .map(({ incoming, ...plain }) => (incoming === undefined ? plain : { ...plain, incoming }));
const section = fc.array(fc.tuple(hashed, entry)).map((entries) => new Map(entries));
const versioned = fc
  .array(fc.tuple(hashed, entry, fc.option(hashed, { nil: undefined })))
  .map((entries) => new Map(entries.map(([key, one, rules]) => [key, rules ? { ...one, rules } : one])));
const parts = { annotations: versioned, labels: versioned, paths: section };
const record = fc.oneof(fc.record(parts), fc.record({ ...parts, revision: fc.string() }));

describe('the sync record', () => {
  test('survives a round trip with entries in any order', () => {
    fc.assert(
      fc.property(record, (one) => {
        const text = encodeLastSynced(one);
        expect(decodeLastSynced(text)).toEqual(one);
        const reversed = { ...one, labels: new Map([...one.labels].toReversed()) };
        expect(encodeLastSynced(reversed)).toBe(text);
      }),
    );
  });

  test('of the copy of another virtual cluster names no kinds', () => {
    const none = new Map<string, never>();
    const text = encodeLastSynced({ annotations: none, labels: none, paths: none, kinds: ['v1 Secret'] });
    const copyOf = (labels: Record<string, string>): KubeObject => ({
      metadata: { name: 'a', labels, annotations: { [LAST_SYNCED]: text } },
    });
    const kindsOf = (labels: Record<string, string>): readonly string[] =>
      recordedKinds(copyOf(labels), 'vc');
    expect(kindsOf({ 'vcluster.loft.sh/managed-by': 'vc' })).toEqual(['v1 Secret']);
    // Another client has removed the label.
    expect(kindsOf({})).toEqual(['v1 Secret']);
    expect(kindsOf({ 'vcluster.loft.sh/managed-by': 'another' })).toEqual([]);
  });

  test('that cannot be parsed is ignored', () => {
    const broken = ['', 'x', 'null', '[]', '{}', '{"v":2}', '{"v":1,"a":1}', '{"v":1,"a":"eAAAAAAAA"}'];
    const wrong = ['{"v":1,"l":"zAAAAAAAABBBBBBBB"}', '{"v":1,"p":"e AAAAAAABBBBBBBB"}', '{"v":1,"a":"eé"}'];
    expect([undefined, ...broken, ...wrong].map(decodeLastSynced).filter(Boolean)).toEqual([]);
  });

  test.each(['', 'x', 'AAAAAAAABBBBBBB', 'é'.repeat(16), 7, null, {}])(
    'is read without versions of rules that are no list of them: %j',
    (versions) => {
      const text = `{"v":1,"a":"dAAAAAAAABBBBBBBBCCCCCCCC","av":${JSON.stringify(versions)},"later":1}`;
      const known = { virtual: 'BBBBBBBB', host: 'CCCCCCCC', isFromHost: false };
      expect(decodeLastSynced(text)?.annotations).toEqual(new Map([['AAAAAAAA', known]]));
    },
  );

  test('never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        decodeLastSynced(text);
        expect(decodeLastSynced(`{"v":1,"a":${JSON.stringify(text)}}`) ?? null).toBeDefined();
      }),
    );
  });

  test('a new revision changes no entry', () => {
    const one = { annotations: new Map(), labels: new Map(), paths: new Map(), revision: '1' };
    const text = withRevision(encodeLastSynced(one), '22');
    expect([recordedRevision(text), decodeLastSynced(text)]).toEqual(['22', { ...one, revision: '22' }]);
    expect(recordedRevision('{"v":1}')).toBeUndefined();
  });

  test('distinguishes values with 48 bits', () => {
    expect(shortHash('a')).toMatch(/^[A-Za-z0-9_-]{8}$/);
    expect(shortHash('a')).not.toBe(shortHash('b'));
  });

  const everyHostname: TestPatches = {
    ...noPatches,
    twoWayPaths: (object) =>
      Array.from({ length: 1000 }, (_, i): ConcretePath => ['subsets', 0, 'addresses', i, 'hostname']).filter(
        (path) => valueAt(object, path) !== undefined,
      ),
    forward: (object) => mapHostnames(object, (name) => `host-${name}`),
    reverse: (object) => mapHostnames(object, (name) => name.replace(/^host-/, '')),
  };

  function mapHostnames(object: KubeObject, change: (name: string) => string): KubeObject {
    let subsets = (object['subsets'] ?? null) as JsonValue;
    for (let i = 0; i < 1000; i++) {
      const name = valueAt(subsets, [0, 'addresses', i, 'hostname']);
      if (typeof name === 'string')
        subsets = withValueAt(subsets, [0, 'addresses', i, 'hostname'], change(name));
    }
    return { ...object, subsets };
  }

  test('of 1000 addresses with a two-way path each fits into an annotation', async () => {
    const addresses = Array.from({ length: 1000 }, (_, i) => ({
      ip: `10.0.${i >> 8}.${i & 255}`,
      hostname: `h${i}`,
    }));
    const virtual = endpoints({}, { subsets: [{ addresses }] });
    const { host } = await merge({ virtual, host: undefined, patches: everyHostname });
    const text = host.metadata.annotations?.[LAST_SYNCED] ?? '';
    expect(text.length).toBeGreaterThan(20_000);
    expect(text.length).toBeLessThan(32 * 1024);
    expect(decodeLastSynced(text)?.paths.size).toBe(1000);
  });

  test('is shortened, and finally only a mark, if the object would not be accepted otherwise', async () => {
    const addresses = Array.from({ length: 1000 }, (_, i) => ({ ip: `10.0.0.${i}`, hostname: `h${i}` }));
    const recordWith = async (bytes: number): Promise<string | undefined> => {
      const annotations = { big: 'x'.repeat(bytes) };
      const virtual = endpoints({ annotations }, { subsets: [{ addresses }] });
      return (await merge({ virtual, host: undefined, patches: everyHostname })).host.metadata.annotations?.[
        LAST_SYNCED
      ];
    };
    expect(decodeLastSynced(await recordWith(200_000))?.paths.size).toBe(1000);
    expect(decodeLastSynced(await recordWith(250_000))?.paths.size).toBe(0);
    expect(decodeLastSynced(await recordWith(250_000))?.annotations.size).toBe(1);
    expect(await recordWith(262_000)).toBe(NO_ROOM);
    expect(decodeLastSynced(NO_ROOM)).toBeUndefined();
  });
});
