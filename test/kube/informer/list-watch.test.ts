/** Details beyond the table of transitions: delays, requests, versions, pages. */

import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { LogFields, Logger } from '../../../src/base/logger.ts';
import { ServerHistory } from '../../../src/kube/informer/list-watch.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { contents, prepare, published, quiet, until, type InformerHarness } from '../informer-harness.ts';
import {
  bookmarkLine,
  cutWatch,
  eventLine,
  list,
  objectOf,
  raw,
  refuse,
  watch,
  type Item,
  type SeenRequest,
  type Step,
} from '../scripted-server.ts';

function items(from: number, to: number): Item[] {
  return Array.from({ length: to - from }, (_, i) => ({ name: `e${from + i}`, version: from + i + 1 }));
}

function parameters(request: SeenRequest | undefined): Record<string, string> {
  return Object.fromEntries(request?.url.searchParams ?? []);
}

/** Waits for a failure, then for the end of its backoff; returns the delay. */
async function overcome(harness: InformerHarness): Promise<number> {
  await until(() => harness.informer.condition.phase === 'waiting');
  const delayMs = harness.clock.nextDelayMs ?? 0;
  harness.clock.advance(delayMs);
  await quiet(1); // the next attempt has begun
  return delayMs;
}

/** Waits for so many ends of lists and watches, and returns how each has ended. */
async function ends({ metrics }: InformerHarness, count: number): Promise<string[]> {
  await until(() => metrics.ends.length >= count);
  return metrics.ends.map(({ outcome }) => outcome);
}

describe('back-off', () => {
  test('doubles from 0.8 s to 30 s, with full jitter', async () => {
    await using harness = await prepare({ random: () => 0.25 });
    harness.server.on('list', ...Array.from({ length: 8 }, () => refuse(500, 'InternalError')));
    harness.start();
    const delays: number[] = [];
    for (let i = 0; i < 8; i++) delays.push(await overcome(harness));
    expect(delays).toEqual([800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000].map((cap) => cap / 4));
    expect(harness.informer.condition.failures).toBe(8);
    expect(harness.informer.isSynced).toBe(false);
  });

  test('is reset by a watch of two minutes, not by a shorter one', async () => {
    await using harness = await prepare();
    harness.server.on('list', list(10, []));
    for (const [lifeMs, failures] of [
      [119_000, 1],
      [119_000, 2],
      [120_000, 1],
    ] as const) {
      const open: ServerResponse[] = [];
      harness.server.on('watch', (response, request) => {
        watch(bookmarkLine(10))(response, request);
        open.push(response);
      });
      const bookmarks = harness.metrics.types.length;
      if (harness.informer.condition.phase === 'stopped') harness.start();
      await until(() => harness.metrics.types.length > bookmarks);
      harness.clock.advance(lifeMs);
      open.forEach((response) => response.socket?.resetAndDestroy());
      await until(() => harness.informer.condition.phase === 'waiting');
      expect(harness.informer.condition.failures).toBe(failures);
      harness.clock.advance(harness.clock.nextDelayMs ?? 0);
    }
  });

  test('the first expired version after an outage has a short delay, the second one does not', async () => {
    await using harness = await prepare();
    const away = Array.from({ length: 4 }, () => refuse(500, 'InternalError'));
    harness.server.on('list', list(10, []), list(20, []), list(30, []));
    harness.server.on('watch', ...away, refuse(410, 'Gone'), refuse(410, 'Gone'), watch());
    harness.start();
    const delays: number[] = [];
    for (let i = 0; i < 6; i++) delays.push(await overcome(harness));
    expect(delays).toEqual([400, 800, 1600, 3200, 400, 12_800]);
  });

  test.each([
    ['0', {}],
    ['-1', {}],
    ['Thu, 01 Jan 1970 00:00:00 GMT', {}],
    ['soon', {}],
    ['', { retryAfterSeconds: -30 }],
    ['', { retryAfterSeconds: '7' }],
    ['', { retryAfterSeconds: 0 }],
  ])('a Retry-After of "%s" (%j) does not shorten the back-off', async (header, details) => {
    await using harness = await prepare();
    const step = refuse(429, 'TooManyRequests', header === '' ? {} : { 'retry-after': header }, details);
    harness.server.on('list', step, step, list(10, [])).on('watch', step, watch());
    harness.start();
    expect([await overcome(harness), await overcome(harness), await overcome(harness)]).toEqual([
      400, 800, 1600,
    ]);
  });

  test('a Retry-After of years is limited to one minute', async () => {
    await using harness = await prepare();
    harness.server.on('list', refuse(503, 'ServiceUnavailable', { 'retry-after': '99999999' }));
    harness.start();
    expect(await overcome(harness)).toBe(60_000);
  });
});

describe('requests', () => {
  test('a list requests pages, a watch requests bookmarks and a timeout between five and ten minutes', async () => {
    const seconds: number[] = [];
    for (const random of [0, 0.5, 0.999_999]) {
      await using harness = await prepare({
        random: () => random,
        namespaces: ['default'],
        labelSelector: 'a=b,c',
      });
      harness.server.on('list', list(10, [])).on('watch', watch());
      harness.start();
      await until(() => harness.server.count('watch') === 1);
      const [listed, watched] = harness.server.seen;
      expect(listed?.url.pathname).toBe('/api/v1/namespaces/default/endpoints');
      expect(parameters(listed)).toEqual({ limit: '500', labelSelector: 'a=b,c' });
      const { timeoutSeconds, ...rest } = parameters(watched);
      expect(rest).toEqual({
        watch: '1',
        allowWatchBookmarks: 'true',
        resourceVersion: '10',
        labelSelector: 'a=b,c',
      });
      seconds.push(Number(timeoutSeconds));
    }
    expect(seconds).toEqual([300, 450, 600]);
  });

  test('the next watch starts after the last stored event or bookmark', async () => {
    await using harness = await prepare();
    harness.server.on('list', list(10, []));
    harness.server.on(
      'watch',
      cutWatch(
        eventLine('ADDED', { name: 'a', version: 12 }),
        bookmarkLine(30),
        eventLine('ADDED', { name: 'late', version: 11 }),
      ),
      cutWatch(eventLine('ADDED', { name: 'b', version: 41 }), '{"type":"ADDED"'),
      watch(),
    );
    harness.start();
    await overcome(harness);
    await overcome(harness);
    await until(() => harness.server.count('watch') === 3);
    const versions = harness.server.seen
      .filter(({ kind }) => kind === 'watch')
      .map((request) => parameters(request)['resourceVersion']);
    expect(versions).toEqual(['10', '30', '41']);
    expect(harness.informer.resourceVersion).toBe('41');
  });

  test('an event that the cache failed to store is not skipped', async () => {
    let isBroken = true;
    await using harness = await prepare({
      transform(object) {
        if (isBroken && object.metadata.name === 'a') throw new Error('broken');
        return object;
      },
    });
    harness.server.on('list', list(10, []), list(13, [{ name: 'a', version: 12 }]));
    harness.server.on('watch', watch(eventLine('ADDED', { name: 'a', version: 12 })), watch());
    harness.start();
    await until(() => harness.informer.condition.phase === 'waiting');
    expect(harness.informer.resourceVersion).toBe('10');
    isBroken = false;
    harness.clock.advance(harness.clock.nextDelayMs ?? 0);
    await until(() => harness.informer.get('default/a') !== undefined);
  });
});

describe('lists', () => {
  test('are stored page by page, and the watch starts at the version of the first page', async () => {
    await using harness = await prepare();
    harness.server.on(
      'list',
      list(100, items(0, 500), 'p2'),
      list(107, items(500, 1000), 'p3'),
      list(109, items(1000, 1001)),
    );
    harness.server.on('watch', watch());
    harness.start();
    await until(() => harness.server.count('watch') === 1);
    expect(harness.informer.size).toBe(1001);
    expect(harness.events).toHaveLength(1001);
    expect(harness.server.seen.map((request) => parameters(request)['continue'])).toEqual([
      undefined,
      'p2',
      'p3',
      undefined,
    ]);
    expect(parameters(harness.server.seen[3])['resourceVersion']).toBe('100');
  });

  test('a token that expires between pages restarts the list with larger pages', async () => {
    await using harness = await prepare();
    harness.server.on('list', list(100, items(0, 2), 'p2'), refuse(410, 'Expired'), list(110, items(0, 3)));
    harness.server.on('watch', watch());
    harness.start();
    await overcome(harness);
    await until(() => harness.informer.isSynced);
    const limits = harness.server.seen
      .filter(({ kind }) => kind === 'list')
      .map((request) => parameters(request));
    expect(limits).toEqual([{ limit: '500' }, { limit: '500', continue: 'p2' }, { limit: '1000' }]);
    expect(harness.informer.size).toBe(3);
    expect(harness.events.map(({ type }) => type)).toEqual(['added', 'added', 'added']);
  });

  test('a page that is too large is requested with half the limit', async () => {
    await using harness = await prepare({ responseBytesMax: 4000, pageSize: 4 });
    const huge = (n: number): Item[] =>
      Array.from({ length: n }, (_, i) => ({
        name: `h${i}`,
        version: 1,
        annotations: { fill: 'x'.repeat(1500) },
      }));
    harness.server.on('list', list(5, huge(4)), list(5, huge(2), 'more'), list(5, huge(2)));
    harness.server.on('watch', watch());
    harness.start();
    await overcome(harness);
    await until(() => harness.informer.isSynced);
    expect(harness.server.seen.slice(0, 3).map((request) => parameters(request)['limit'])).toEqual([
      '4',
      '2',
      '2',
    ]);
  });

  test('a slow page is given up after a minute', async () => {
    await using harness = await prepare();
    harness.start();
    await until(() => harness.server.count('list') === 1);
    harness.clock.advance(59_999);
    await quiet();
    expect(harness.metrics.ends).toEqual([]);
    harness.clock.advance(1);
    await until(() => harness.metrics.ends.length === 1);
    expect(harness.metrics.ends).toEqual([{ phase: 'listing', outcome: 'unreachable' }]);
    expect(harness.informer.condition.lastError).toMatch(/took more than 60000 ms/);
  });
});

/** A server is restored from a snapshot, and its versions may have passed the last known one before the client is back. */
describe('a restored server', () => {
  const A = { name: 'a', version: 240 };
  const BEFORE = [A, { name: 'b', version: 245 }, { name: 'surplus', version: 246 }];
  const AFTER = [
    { ...A, version: 239 },
    { name: 'b', version: 245, annotations: { other: 'content' } },
    { name: 'missing', version: 251 },
  ];

  /** The informer knows version 247, then the server is away. */
  async function known(...watches: readonly Step[]): Promise<InformerHarness> {
    const harness = await prepare();
    harness.server.tellsNoVersion = false;
    harness.server.on('list', list(247, BEFORE)).on('watch', ...watches);
    harness.start();
    await until(() => harness.informer.isSynced);
    return harness;
  }

  function expectRestored({ informer }: InformerHarness): void {
    expect(contents(informer)).toEqual({ a: '239', b: '245', missing: '251' });
    expect(informer.get('default/b')?.metadata.annotations).toEqual({ other: 'content' });
    expect(informer.condition.isRewound).toBe(false);
  }

  test('that refused a connection and has passed the last known version is listed', async () => {
    await using harness = await known(cutWatch(bookmarkLine(247)), watch());
    harness.server
      .on('version', (response) => response.socket?.resetAndDestroy())
      .on('list', list(252, AFTER));
    await overcome(harness);
    await overcome(harness);
    expect(await ends(harness, 4)).toEqual(['complete', 'dropped', 'unreachable', 'restored']);
    expectRestored(harness);
    expect(published(harness).slice(3)).toEqual([
      ['updated', 'default/a', '239'],
      ['updated', 'default/b', '245'],
      ['added', 'default/missing', '251'],
      // All objects that are left, since the same version may have other content.
      ['updated', 'default/a', '239'],
      ['updated', 'default/b', '245'],
      ['updated', 'default/missing', '251'],
      ['deleted', 'default/surplus', '246'],
    ]);
    expect(harness.events.at(-1)?.mayBeRestored).toBe(true);
  });

  test('that has given a version again, as a read shows, is listed again', async () => {
    await using harness = await known(watch(bookmarkLine(247)));
    const { informer } = harness;
    const read = (item: Item): KubeObject => objectOf(item) as KubeObject; // the fixture's form is that of an object
    expect([{ ...A, version: 241 }, A].map((item) => informer.confirms(read(item)))).toEqual([true, true]);
    expect(informer.mayBeRestored('default')).toBe(false);
    expect(informer.confirms(read({ ...A, annotations: { other: 'content' } }))).toBe(false);
    expect(informer.mayBeRestored('default')).toBe(true);
    harness.server.on('list', list(252, AFTER)).on('watch', watch());
    await overcome(harness);
    await until(() => informer.get('default/missing') !== undefined);
    expectRestored(harness);
  });

  test('with an older version than the last known one is listed before a watch is resumed', async () => {
    await using harness = await known(cutWatch(bookmarkLine(247)), watch());
    harness.server.on('version', list(246, []));
    await overcome(harness);
    await until(() => harness.informer.condition.phase === 'waiting');
    expect(harness.informer.condition.isRewound).toBe(true);
    // The server passes the last known version before it is listed.
    harness.server.on('list', list(252, AFTER));
    await overcome(harness);
    expect(await ends(harness, 4)).toEqual(['complete', 'dropped', 'rewound', 'restored']);
    expectRestored(harness);
  });

  test('is noticed by a list after one that broke off', async () => {
    await using harness = await prepare();
    const older = list(240, [{ name: 'a', version: 239 }]);
    harness.server.on('list', list(247, BEFORE, 'p2'), refuse(503, 'ServiceUnavailable'), older);
    harness.server.on('watch', watch());
    harness.start();
    await overcome(harness);
    await until(() => harness.informer.isSynced);
    expect(await ends(harness, 2)).toEqual(['failed', 'restored']);
    expect(contents(harness.informer)).toEqual({ a: '239' });
  });

  test('is noticed on an idle watch within a minute', async () => {
    await using harness = await known(watch(bookmarkLine(247)), watch());
    await until(() => harness.metrics.types.length === 1);
    harness.clock.advance(59_999);
    expect(harness.server.count('version')).toBe(0);
    harness.clock.advance(1);
    harness.server.on('version', list(247, []), list(246, [])).on('list', list(252, AFTER));
    await until(() => harness.server.count('version') === 1);
    await quiet();
    harness.clock.advance(60_000);
    await overcome(harness);
    expect(await ends(harness, 3)).toEqual(['complete', 'rewound', 'restored']);
    expectRestored(harness);
  });

  test('is noticed by the response to a write', async () => {
    await using harness = await known(watch(), watch());
    await until(() => harness.server.count('watch') === 1);
    const write = (name: string, version: number): KubeObject => objectOf({ name, version }) as KubeObject;
    harness.informer.observeWrite(write('a', 249), '247');
    harness.informer.observeWrite(write('b', 248), '247');
    expect(harness.informer.newestVersion).toBe('249');
    expect(harness.informer.condition.isRewound).toBe(false);
    harness.informer.observeWrite(write('missing', 243), '249');
    expect(harness.informer.condition.isRewound).toBe(true);
    harness.server.on('list', list(252, AFTER));
    await overcome(harness);
    expect(await ends(harness, 3)).toEqual(['complete', 'rewound', 'restored']);
    expectRestored(harness);
  });

  test('whose list is older than a write of this process', async () => {
    await using harness = await known(refuse(410, 'Gone'), watch());
    harness.informer.observeWrite(objectOf({ name: 'a', version: 260 }) as KubeObject, '247');
    harness.server.on('list', list(252, AFTER));
    await overcome(harness);
    expect((await ends(harness, 3)).at(-1)).toBe('restored');
    expectRestored(harness);
  });

  test('an object that was deleted exists again', async () => {
    const deleted = [eventLine('DELETED', { name: 'surplus', version: 248 }), bookmarkLine(249)];
    await using harness = await known(cutWatch(...deleted), watch());
    await until(() => harness.informer.condition.phase === 'waiting');
    harness.informer.observeDelete('default/a', 'uid-a');
    expect(contents(harness.informer)).toEqual({ b: '245' });
    harness.server.on('version', (response) => response.socket?.resetAndDestroy());
    harness.server.on('list', list(252, BEFORE));
    await overcome(harness);
    await overcome(harness);
    expect((await ends(harness, 4)).at(-1)).toBe('restored');
    expect(contents(harness.informer)).toEqual({ a: '240', b: '245', surplus: '246' });
  });

  test('versions that are not numbers are never older', async () => {
    await using harness = await prepare();
    harness.server.tellsNoVersion = false;
    const items = [{ name: 'a', version: 'x7' }];
    harness.server.on('list', list('x9', items)).on('watch', cutWatch(bookmarkLine('x8')), watch());
    harness.server.on('version', list('x1', []));
    harness.start();
    await overcome(harness);
    await until(() => harness.server.count('watch') === 2);
    expect(await ends(harness, 2)).toEqual(['complete', 'dropped']);
  });
});

test('a restore that another list-watch has found is listed', async () => {
  const server = new ServerHistory();
  await using harness = await prepare({ server });
  harness.server.on('list', list(10, [{ name: 'a', version: 9 }]), list(12, [{ name: 'a', version: 9 }]));
  harness.server.on('watch', watch(bookmarkLine(10)), watch());
  harness.start();
  await until(() => harness.metrics.types.length === 1);
  server.restored(() => undefined);
  await overcome(harness);
  expect(await ends(harness, 3)).toEqual(['complete', 'rewound', 'restored']);
  expect(harness.events.map(({ type, mayBeRestored }) => [type, mayBeRestored])).toEqual([
    ['added', false],
    ['updated', true],
  ]);
});

test('lists after the first one wait for each other', async () => {
  const permit = Promise.withResolvers<void>();
  const server = new ServerHistory();
  await using harness = await prepare({ server });
  const other = server.relist(() => permit.promise, harness.clock, new AbortController().signal);
  harness.server.on('list', list(10, []), list(11, [])).on('watch', refuse(410, 'Gone'), watch());
  harness.start();
  await overcome(harness);
  await quiet();
  expect(harness.server.count('list')).toBe(1);
  permit.resolve();
  await other;
  await until(() => harness.informer.resourceVersion === '11');
});

const MALFORMED = { metadata: { name: 'a', namespace: 'default', labels: 'x' } };

function malformedList(version: number): string {
  const nameless = { metadata: { resourceVersion: '3' } };
  return JSON.stringify({
    metadata: { resourceVersion: String(version) },
    items: [MALFORMED, null, nameless],
  });
}

test('malformed items make a list fail, so that no object is taken for deleted', async () => {
  await using harness = await prepare();
  harness.server.on('list', list(10, [{ name: 'a', version: 5 }]), raw(200, malformedList(11)));
  harness.server.on('watch', refuse(410, 'Gone'));
  harness.start();
  await overcome(harness);
  await until(() => harness.metrics.ends.at(-1)?.outcome === 'malformed');
  expect(contents(harness.informer)).toEqual({ a: '5' });
});

test('malformed items are left out where they are reported, and what is held of them stays', async () => {
  const reported: unknown[] = [];
  await using harness = await prepare({ onMalformed: (items) => reported.push(items) });
  harness.server.on(
    'list',
    list(10, [
      { name: 'a', version: 5 },
      { name: 'b', version: 6 },
    ]),
  );
  harness.server.on('list', raw(200, malformedList(11))).on('watch', refuse(410, 'Gone'), watch());
  harness.start();
  await overcome(harness);
  await until(() => reported.length === 2);
  expect(contents(harness.informer)).toEqual({ a: '5' });
  expect(reported).toEqual([
    [],
    [
      { key: 'default/a', why: 'metadata.labels is not a map of strings' },
      { key: undefined, why: 'it has no metadata' },
      { key: undefined, why: 'it has no metadata.name' },
    ],
  ]);
});

test('a list that does not end holds up the next one for five seconds only', async () => {
  const server = new ServerHistory();
  await using harness = await prepare({ server });
  const stop = new AbortController();
  void server.relist(() => new Promise(() => undefined), harness.clock, stop.signal);
  harness.server.on('list', list(10, []), list(11, [])).on('watch', refuse(410, 'Gone'), watch());
  harness.start();
  await overcome(harness);
  await quiet();
  expect(harness.server.count('list')).toBe(1);
  harness.clock.advance(5000);
  await until(() => harness.informer.resourceVersion === '11');
  stop.abort();
});

describe('the log of an outage', () => {
  /** What each of three list-watches of a server meets, in this order, after its first list and watch. */
  const OUTAGES: Readonly<Record<string, readonly Step[]>> = {
    'a server that is restarted': [
      cutWatch(bookmarkLine(10)),
      refuse(502, 'BadGateway'),
      refuse(401, 'Unauthorized'),
      refuse(429, 'TooManyRequests'),
      refuse(410, 'Gone'),
      refuse(503, 'ServiceUnavailable'),
    ],
    'watches that end at once': [cutWatch(), cutWatch(), cutWatch(), cutWatch()],
  };

  const lines = (): { logger: Logger; logged: string[] } => {
    const logged: string[] = [];
    const log = (level: string) => (fields: LogFields, message: string) =>
      void logged.push(`${level} ${message} ${String(fields['outcome'])}`);
    const logger: Logger = {
      trace: () => undefined,
      debug: () => undefined,
      info: log('info'),
      warn: log('warn'),
      error: log('error'),
      child: () => logger,
    };
    return { logger, logged };
  };

  test.each(Object.entries(OUTAGES))('%s: one line for all list-watches', async (_, steps) => {
    const { logger, logged } = lines();
    const server = new ServerHistory();
    await using one = await prepare({ server, logger });
    await using two = await prepare({ server, logger });
    await using three = await prepare({ server, logger });
    const all = [one, two, three];
    for (const harness of all) {
      const lists = steps.map((_step, at) => list(11 + at, []));
      harness.server.on('list', list(10, []), refuse(500, 'InternalError'), ...lists);
      harness.server.on('watch', ...steps, watch());
      harness.start();
    }
    for (let turn = 0; turn < steps.length; turn++) for (const harness of all) await overcome(harness);
    expect(logged).toHaveLength(1);
  });

  test('an outage after one that is over is another line, and a watch that is resumed at once is none', async () => {
    const { logger, logged } = lines();
    const server = new ServerHistory();
    await using harness = await prepare({ server, logger });
    const open: ServerResponse[] = [];
    const kept: Step = (response, request) => {
      watch(bookmarkLine(10))(response, request);
      open.push(response);
    };
    const away = refuse(503, 'ServiceUnavailable');
    harness.server.on('list', list(10, []), list(10, []), list(10, []));
    harness.server.on('watch', kept, away, away, away, kept, away, away, away, kept, kept);
    harness.start();
    for (const [lives, outages] of [
      [1, 1],
      [2, 2],
      [3, 2],
    ] as const) {
      await until(() => open.length === lives && harness.metrics.types.length >= lives);
      await quiet();
      harness.clock.advance(147_000); // healthy, and not silent yet
      open.at(-1)?.socket?.resetAndDestroy();
      for (let attempt = 0; attempt < (lives === 3 ? 1 : 4); attempt++) await overcome(harness);
      expect(logged).toHaveLength(outages);
    }
    await until(() => open.length === 4);
    expect(logged).toEqual(['warn list-watch interrupted failed', 'warn list-watch interrupted failed']);
  });

  const AWAY = refuse(503, 'ServiceUnavailable');
  const DENIED = refuse(403, 'Forbidden');

  test.each([
    ['during an outage', [AWAY, DENIED, DENIED], ['failed', 'forbidden']],
    ['before an outage, which is reported too', [DENIED, AWAY, AWAY], ['forbidden', 'failed']],
  ])('what concerns one resource is reported once: %s', async (_, refusals, outcomes) => {
    const { logger, logged } = lines();
    await using harness = await prepare({ server: new ServerHistory(), logger });
    harness.server.on('list', ...refusals, list(10, [])).on('watch', watch());
    harness.start();
    for (const _refusal of refusals) await overcome(harness);
    await until(() => harness.informer.isSynced);
    expect(logged).toEqual(outcomes.map((outcome) => `warn list-watch interrupted ${outcome}`));
  });
});

test('a server that was away for five seconds is listed, not resumed', async () => {
  await using harness = await prepare();
  harness.server.on('list', list(10, []), list(11, []));
  const away = [refuse(502, 'BadGateway'), refuse(502, 'BadGateway'), refuse(502, 'BadGateway')];
  harness.server.on('watch', cutWatch(bookmarkLine(10)), ...away, watch());
  harness.start();
  for (const delayMs of [400, 800, 1600, 3200]) expect(await overcome(harness)).toBe(delayMs);
  await until(() => harness.server.count('watch') === 5);
  expect(harness.server.count('list')).toBe(2);
  expect(harness.metrics.ends.at(-2)?.outcome).toBe('interrupted');
});

test('a server that a proxy has answered for with pages for five seconds may have been restored since', async () => {
  await using harness = await prepare();
  const pages = [1, 2, 3].map(() => refuse(404, 'NotFound'));
  harness.server.on('list', list(10, [{ name: 'a', version: 9 }]), ...pages, list(11, []));
  harness.server.on('watch', cutWatch(bookmarkLine(10)), refuse(404, 'NotFound'), watch());
  harness.start();
  for (const delayMs of [400, 800, 1600, 3200, 6400]) expect(await overcome(harness)).toBe(delayMs);
  await until(() => harness.server.count('watch') === 3);
  expect(harness.events.at(-1)).toMatchObject({ type: 'deleted', mayBeRestored: true });
});

describe('the reported condition', () => {
  test('staleness grows while nothing is received and is reset by the first data', async () => {
    await using harness = await prepare();
    harness.clock.advance(5000);
    expect(harness.informer.stalenessMs).toBe(5000);
    const open: ServerResponse[] = [];
    harness.server.on('list', list(10, []));
    harness.server.on('watch', (response, request) => {
      watch(bookmarkLine(10))(response, request);
      open.push(response);
    });
    harness.start();
    await until(() => harness.metrics.types.length === 1);
    expect(harness.informer.stalenessMs).toBe(0);
    harness.clock.advance(60_000);
    expect(harness.informer.stalenessMs).toBe(60_000);
    open.forEach((response) => response.write(bookmarkLine(11)));
    await until(() => harness.informer.stalenessMs === 0);
  });

  test('every outcome is declared, so that its counter can start at zero', async () => {
    await using harness = await prepare();
    expect(harness.metrics.expected).toContain('watching silent');
    expect(harness.metrics.expected).toHaveLength(27);
  });
});

describe('stopping', () => {
  test.each([
    ['while listing', (harness: InformerHarness) => until(() => harness.server.count('list') === 1)],
    [
      'while watching',
      async (harness: InformerHarness) => {
        harness.server.on('list', list(10, [])).on('watch', watch(bookmarkLine(10)));
        await until(() => harness.metrics.types.length === 1);
      },
    ],
    [
      'while waiting',
      async (harness: InformerHarness) => {
        harness.server.on('list', refuse(500, 'InternalError'));
        await until(() => harness.informer.condition.phase === 'waiting');
      },
    ],
  ])('%s ends immediately', async (_, reach) => {
    await using harness = await prepare();
    const stop = new AbortController();
    const running = harness.informer.run(stop.signal);
    await reach(harness);
    stop.abort();
    await running;
    expect(harness.informer.condition.phase).toBe('stopped');
    expect(harness.clock.nextDelayMs, 'no timer is left').toBeUndefined();
  });
});
