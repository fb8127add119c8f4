/** The parser of watch bodies, with chunk boundaries at any position. */

import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  MalformedStreamError,
  TransportError,
  type ObjectVersion,
  type WatchHandler,
} from '../../../src/kube/types.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { readPace } from '../../support/read-paces.ts';
import { WatchStream } from '../../../src/kube/client/watch-stream.ts';
import { errorLine, eventLine } from '../scripted-server.ts';

function record(): { handler: WatchHandler; seen: string[] } {
  const seen: string[] = [];
  const handler: WatchHandler = {
    started: () => undefined,
    dataReceived: () => undefined,
    event: (type, object) =>
      seen.push(`${type} ${object.metadata.name ?? ''} ${JSON.stringify(object.metadata.annotations ?? {})}`),
  };
  return { handler, seen };
}

function feed(bytes: Buffer, cuts: readonly number[], lineBytesMax?: number): string[] {
  const { handler, seen } = record();
  const stream = new WatchStream(handler, lineBytesMax);
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  for (let i = 1; i < places.length; i++) stream.chunk(bytes.subarray(places[i - 1], places[i]));
  stream.end();
  return seen;
}

const line = fc
  .record({
    type: fc.constantFrom('ADDED', 'MODIFIED', 'DELETED'),
    name: fc.constantFrom('a', 'b'),
    text: fc.string({ unit: 'grapheme', maxLength: 20 }),
  })
  .map(({ type, name, text }) => eventLine(type, { name, version: 1, annotations: { text } }));

describe('a watch stream', () => {
  test('is parsed correctly with any chunk boundaries, also inside characters', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 30 }), (lines, cuts) => {
        const bytes = Buffer.from(lines.join(''));
        expect(feed(bytes, cuts)).toEqual(feed(bytes, []));
        expect(feed(bytes, [])).toHaveLength(lines.length);
      }),
    );
  });

  test('ignores empty lines', () => {
    expect(feed(Buffer.from(`\n\r\n${eventLine('ADDED', { name: 'a', version: 1 })}\n`), [])).toEqual([
      'ADDED a {}',
    ]);
  });

  test('that ends inside an event is an error', () => {
    expect(() => feed(Buffer.from('{"type":"ADD'), [])).toThrow(TransportError);
  });

  test('with a line beyond the limit is aborted before the line is complete', () => {
    const { handler } = record();
    const stream = new WatchStream(handler, 1000);
    stream.chunk(Buffer.alloc(900, 0x20));
    expect(() => stream.chunk(Buffer.alloc(101, 0x20))).toThrow(/longer than 1000 bytes/);
  });

  test('of a server that is not trusted may have events of any bytes, but none that take far longer to parse', () => {
    const pace = readPace({ burst: 1e9, perSecond: 1 }, new FakeClock());
    const of = (subsets: string): Buffer =>
      Buffer.from(
        eventLine('ADDED', { name: 'a', version: 1 }).replace(
          '"metadata"',
          `"subsets":${subsets},"metadata"`,
        ),
      );
    const { handler, seen } = record();
    const stream = new WatchStream(handler, 4 * 2 ** 20, pace);
    stream.chunk(of(`[${'0,'.repeat(1e6)}0]`));
    expect(seen).toEqual(['ADDED a {}']);
    const nested = of('['.repeat(1e6) + ']'.repeat(1e6));
    expect(() => stream.chunk(nested)).toThrow(MalformedStreamError);
    expect(() => stream.chunk(nested)).toThrow(
      /^an event of the watch has more than 400000 objects and arrays$/u,
    );
  });

  test('of a server that is not trusted counts the time that its events take', () => {
    const clock = new FakeClock();
    const pace = readPace({ burst: 1e9, perSecond: 1 }, clock, { burst: 100, perSecond: 10 });
    const { handler } = record();
    const stream = new WatchStream({ ...handler, event: () => clock.advance(60) }, 1e6, pace);
    const chunk = Buffer.from(eventLine('ADDED', { name: 'a', version: 1 }));
    stream.chunk(chunk);
    expect(pace.spend(0)).toBe(0);
    stream.chunk(Buffer.concat([chunk, chunk]));
    expect(pace.spend(0)).toBeGreaterThan(7000);
  });

  test('with an ERROR event rejects with its error', () => {
    const stream = new WatchStream(record().handler);
    const expired = expect.objectContaining({ name: 'StatusError', code: 410, reason: 'Expired' }) as Error; // matches one
    expect(() => stream.chunk(Buffer.from(errorLine(410, 'Expired')))).toThrow(expired);
  });

  test.each([
    ['no JSON', '<html>\n'],
    ['no object', '[]\n'],
    ['null', 'null\n'],
    ['an unknown type', '{"type":"PING","object":{}}\n'],
    ['an event without an object', '{"type":"ADDED"}\n'],
    ['an object without a version', '{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'],
    ['an object without a name', '{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}\n'],
    [
      'a version that is a number',
      '{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":1}}}\n',
    ],
    ['an error without a status', '{"type":"ERROR","object":"boom"}\n'],
  ])('with %s is malformed', (_, text) => {
    const { handler, seen } = record();
    expect(() => new WatchStream(handler).chunk(Buffer.from(text))).toThrow(MalformedStreamError);
    expect(seen).toEqual([]);
  });

  test('treats hostile keys as data', () => {
    const { seen, handler } = record();
    const text =
      '{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1","annotations":{"__proto__":"x"}}}}\n';
    new WatchStream(handler).chunk(Buffer.from(text));
    expect(seen).toEqual(['ADDED a {"__proto__":"x"}']);
  });
});

describe('an event that is ignored before it is parsed', () => {
  const VERSION: ObjectVersion = { namespace: 'shop', name: 'web', uid: 'u-1', resourceVersion: '7' };
  const OBJECT = {
    kind: 'Endpoints',
    apiVersion: 'v1',
    metadata: { name: 'web', namespace: 'shop', uid: 'u-1', resourceVersion: '7', labels: { a: 'b' } },
  };

  const { name, ...rest } = OBJECT.metadata;

  /** The versions that the stream asks for, and the events that it passes on. */
  function follow(
    text: string,
    isIgnored: (version: ObjectVersion) => boolean,
    cuts: readonly number[] = [],
  ) {
    const asked: ObjectVersion[] = [];
    const seen: unknown[] = [];
    const stream = new WatchStream({
      started: () => undefined,
      dataReceived: () => undefined,
      event: (_, { metadata: { namespace = '', name: own, uid = '', resourceVersion = '' } }) =>
        seen.push({ namespace, name: own, uid, resourceVersion }),
      ignores: (_, version) => {
        asked.push(version);
        return isIgnored(version);
      },
    });
    const bytes = Buffer.from(text);
    const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted(
      (a, b) => a - b,
    );
    for (let i = 1; i < places.length; i++) stream.chunk(bytes.subarray(places[i - 1], places[i]));
    stream.end();
    return { asked, seen };
  }

  const event = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;

  test.each(['ADDED', 'MODIFIED'])('is %s with the version that is held, in any chunks', (type) => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 5 }), (cuts) => {
        const { asked, seen } = follow(event(type, OBJECT), () => true, cuts);
        expect({ asked, seen }).toEqual({ asked: [VERSION], seen: [] });
      }),
    );
  });

  test.each([
    ['of metadata alone', { ...OBJECT, kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' }],
    ['of a generated name', { ...OBJECT, metadata: { name, generateName: 'web-', ...rest } }],
  ])('may be %s', (_, object) => {
    expect(follow(event('MODIFIED', object), () => true).asked).toEqual([VERSION]);
  });

  test.each(['DELETED', 'BOOKMARK'])('is never a %s', (type) => {
    expect(follow(event(type, OBJECT), () => true)).toEqual({ asked: [], seen: [VERSION] });
  });

  test('never has another version than the parsed object', () => {
    const lookAlike = fc.constantFrom(
      'web","namespace":"shop","uid":"u-1","resourceVersion":"7"',
      '"metadata":{"name":"web","namespace":"shop","uid":"u-1","resourceVersion":"7"}',
      '{"type":"MODIFIED","object":{"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"web",',
      '\\","resourceVersion":"7"',
    );
    const text = fc.oneof(lookAlike, fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 8 }));
    const or = (usual: string): fc.Arbitrary<string> =>
      fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, text);
    const inAnyOrder = <T extends object>(members: T): fc.Arbitrary<T> => {
      const all = Object.entries(members);
      const shuffled = fc.shuffledSubarray(all, { minLength: all.length });
      return fc.oneof(fc.constant(all), shuffled).map((entries) => Object.fromEntries(entries) as T); // the same members
    };
    const metadata = fc
      .record(
        {
          name: or('web'),
          generateName: text,
          namespace: or('shop'),
          uid: or('u-1'),
          resourceVersion: fc.oneof(or('7'), fc.constantFrom('8', '77', '07')),
          labels: fc.dictionary(text, text, { maxKeys: 2 }),
          metadata: fc.constant(VERSION),
        },
        { requiredKeys: ['name', 'resourceVersion'] },
      )
      .chain(inAnyOrder);
    const object = fc
      .record({
        kind: or('Endpoints'),
        apiVersion: or('v1'),
        metadata,
        note: text,
        object: fc.constant({ metadata: VERSION }),
      })
      .chain(inAnyOrder);
    const type = fc.constantFrom('ADDED', 'MODIFIED', 'DELETED');
    let ignored = 0;
    fc.assert(
      fc.property(type, object, (eventType, one) => {
        const { metadata: own } = one;
        const { namespace = '', uid = '', resourceVersion } = own;
        const version = { namespace, name: own.name, uid, resourceVersion };
        const isHeld = (asked: ObjectVersion): boolean => isDeepStrictEqual(asked, VERSION);
        const { asked, seen } = follow(event(eventType, one), isHeld);
        expect(asked).toEqual(asked.map(() => version));
        const isIgnored = asked.some(isHeld);
        expect(seen).toEqual(isIgnored ? [] : [version]);
        if (isIgnored) ignored += 1;
      }),
      { numRuns: 2000 },
    );
    expect(ignored).toBeGreaterThan(0);
  });
});
