/** Watches: revisions, bookmarks, limits. */

import { describe, expect, test } from 'vitest';
import { textAt } from '../../support/cases.ts';
import { WATCH_UNREAD_BYTES_MAX } from '../../../src/apiserver/limits.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { KEYS, Keys, TYPE, metadata } from '../key-requests.ts';

describe('watches', () => {
  test('send bookmarks regularly and before they end', async () => {
    const clock = new FakeClock();
    await using keys = await Keys.open({ clock });
    const version = textAt(metadata(await keys.create('k')), 'resourceVersion');
    const query = `?watch=1&resourceVersion=${version}&allowWatchBookmarks=true&timeoutSeconds=90`;
    await using watch = await keys.api.client.watch(KEYS + query);
    clock.advance(60_000);
    expect(await watch.next()).toEqual({
      type: 'BOOKMARK',
      object: { ...TYPE, metadata: { resourceVersion: version } },
    });
    clock.advance(30_000);
    expect((await watch.next())?.type).toBe('BOOKMARK');
    expect(await watch.next()).toBeUndefined();
  });

  test('send no bookmark that is older than their last event, or than the revision asked for', async () => {
    const clock = new FakeClock();
    await using keys = await Keys.open({ clock });
    const version = Number(textAt(metadata(await keys.create('k')), 'resourceVersion'));
    const watchFrom = (from: number) =>
      keys.api.client.watch(
        `${KEYS}?watch=1&resourceVersion=${from}&allowWatchBookmarks=true&timeoutSeconds=300`,
      );
    await using present = await watchFrom(version);
    await using future = await watchFrom(version + 2);
    for (const name of ['a', 'b', 'c']) {
      const made = textAt(metadata(await keys.create(name)), 'resourceVersion');
      expect(await present.summary(1)).toEqual([`ADDED ${name}`]);
      clock.advance(60_000);
      expect(await present.next()).toMatchObject({
        type: 'BOOKMARK',
        object: { metadata: { resourceVersion: made } },
      });
    }
    expect(await future.next()).toMatchObject({ type: 'BOOKMARK' });
    expect(await future.summary(1)).toEqual(['ADDED c']);
  });

  test('send more current objects than a slow client may leave unread', async () => {
    await using keys = await Keys.open();
    const description = 'd'.repeat(1024 * 1024);
    const count = (2 * WATCH_UNREAD_BYTES_MAX) / description.length;
    for (let n = 0; n < count; n++) {
      const key = { resource: 'ownedaccesskeys.management.platform.sh', namespace: '', name: `k-${n}` };
      await keys.api.store.create(key, { metadata: { name: key.name }, spec: { description } });
    }
    await using watch = await keys.api.client.watch(`${KEYS}?watch=1&resourceVersion=0`);
    const events = await watch.summary(count);
    expect(events).toHaveLength(count);
    expect(events.every((event) => event.startsWith('ADDED k-'))).toBe(true);
    // The watch continues with changes.
    await keys.send('DELETE', '/k-0');
    expect(await watch.summary(1)).toEqual(['DELETED k-0']);
  });

  test('of a compacted resourceVersion get an error event', async () => {
    await using keys = await Keys.open();
    const version = textAt(metadata(await keys.create('a')), 'resourceVersion');
    await keys.create('b');
    await keys.api.store.compact(await keys.api.store.revision());
    await using watch = await keys.api.client.watch(`${KEYS}?watch=1&resourceVersion=${version}`);
    expect(watch.status).toBe(200);
    expect(await watch.next()).toMatchObject({
      type: 'ERROR',
      object: { kind: 'Status', code: 410, reason: 'Expired' },
    });
    expect(await watch.next()).toBeUndefined();
  });
});
