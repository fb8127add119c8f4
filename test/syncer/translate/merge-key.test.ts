/** Each rule of the merge of one annotation or label by one example. What holds for every history is in merge-properties.test.ts. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { MANAGED_ANNOTATIONS } from '../../../src/syncer/translate/bookkeeping.ts';
import { merge, noPatches, touch, LOST, copyOf, annotationOf, patchK } from './merge-setup.ts';
import { endpoints } from './setup.ts';

const created = patchK('both', (value) => value ?? 'created');

describe('a value that a patch creates', () => {
  const virtual = endpoints({ annotations: { own: '1' } });

  test('exists only on the host; a change there is reverted', async () => {
    const host = touch(await copyOf(virtual, created), { annotations: { k: 'changed' } });
    const merged = await merge({ virtual, host, patches: created });
    expect(annotationOf(merged.host, 'k')).toBe('created');
    expect(merged.isVirtualChanged).toBe(false);
    expect(annotationOf(merged.host, MANAGED_ANNOTATIONS)).toBe('own');
  });

  test('is removed with the patch, with a record and after the record was lost', async () => {
    const copy = await copyOf(virtual, created);
    expect(annotationOf((await merge({ virtual, host: copy })).host, 'k')).toBeUndefined();
    const again = (await merge({ virtual, host: touch(copy, { annotations: LOST }), patches: created })).host;
    const after = await merge({ virtual, host: again });
    expect(annotationOf(after.host, 'k')).toBeUndefined();
    expect(after.isVirtualChanged).toBe(false);
  });

  test('is updated when only the expression changed', async () => {
    const own = endpoints({ annotations: { k: 'v' } });
    const host = await copyOf(
      own,
      patchK('both', (value) => value && `a-${value}`),
    );
    const merged = await merge({
      virtual: own,
      host,
      patches: patchK('both', (value) => value && `b-${value}`),
    });
    expect(annotationOf(merged.host, 'k')).toBe('b-v');
    expect(merged.isVirtualChanged).toBe(false);
  });
});

describe('keys that another client adds on the host', () => {
  test('are synced back and are not listed as managed, in this step and the next', async () => {
    const virtual = endpoints({ annotations: { own: '1' } });
    const host = touch(await copyOf(virtual), { annotations: { added: '1' } });
    const merged = await merge({ virtual, host });
    expect(merged.virtual.metadata.annotations).toEqual({ own: '1', added: '1' });
    expect(annotationOf(merged.host, MANAGED_ANNOTATIONS)).toBe('own');
    // Decided again after the virtual write, the host still as it was.
    const next = await merge({ virtual: merged.virtual, host });
    expect(annotationOf(next.host, MANAGED_ANNOTATIONS)).toBe('own');
    expect(next.isVirtualChanged).toBe(false);
  });

  test('stay pending and are kept on the host if the write to the virtual side failed', async () => {
    const patches = patchK(
      'both',
      (value) => value && `team-${value}`,
      (value) => value?.replace(/^team-/, ''),
    );
    const virtual = endpoints({});
    const host = touch(await copyOf(virtual, patches), { annotations: { k: 'shop' } });
    const recorded = (await merge({ virtual, host, patches })).host;
    const again = await merge({ virtual, host: recorded, patches, arrival: 'due' });
    expect(annotationOf(again.host, 'k')).toBe('team-shop');
    expect(annotationOf(again.virtual, 'k')).toBe('shop');
  });

  test('are listed once the virtual side changes them', async () => {
    const host = touch(await copyOf(endpoints({})), { annotations: { added: '1' } });
    const { virtual, host: synced } = await merge({ virtual: endpoints({}), host });
    const merged = await merge({ virtual: touch(virtual, { annotations: { added: '2' } }), host: synced });
    expect([annotationOf(merged.host, 'added'), annotationOf(merged.host, MANAGED_ANNOTATIONS)]).toEqual([
      '2',
      'added',
    ]);
  });

  test('are kept on the host if their reverse is undefined', async () => {
    const patches = patchK('both', undefined, () => undefined);
    const virtual = endpoints({});
    const host = touch(await copyOf(virtual, patches), { annotations: { k: 'host' } });
    const first = await merge({ virtual, host, patches });
    const second = await merge({ virtual, host: first.host, patches });
    expect([first.host, second.host].map((one) => annotationOf(one, 'k'))).toEqual(['host', 'host']);
    expect([first, second].map((one) => one.isVirtualChanged)).toEqual([false, false]);
  });

  test('are removed from the virtual side, which had them, if their reverse is undefined, and are kept on the host', async () => {
    const patches = patchK('both', undefined, (value) => (value === 'bad' ? undefined : value));
    const virtual = endpoints({ annotations: { k: 'v' } });
    const host = touch(await copyOf(virtual, patches), { annotations: { k: 'bad' } });
    const first = await merge({ virtual, host, patches });
    expect(annotationOf(first.virtual, 'k')).toBeUndefined();
    const second = await merge({ virtual: first.virtual, host: first.host, patches });
    expect(annotationOf(second.host, 'k')).toBe('bad');
  });

  test('are synced back together with the other changes of the reverse patch', async () => {
    const patches = {
      ...noPatches,
      reverse: (object: KubeObject) => touch(object, { annotations: { extra: 'r' } }),
    };
    const virtual = endpoints({});
    const host = touch(await copyOf(virtual), { annotations: { added: '1' } });
    expect((await merge({ virtual, host, patches })).virtual.metadata.annotations).toEqual({
      added: '1',
      extra: 'r',
    });
  });
});

describe('directions', () => {
  test('a host change that the reverse maps to the virtual value is drift and reverted immediately', async () => {
    const patches = patchK(
      'both',
      (value) => value && `f-${value}`,
      (value) => value?.trim().replace(/^f-/, ''),
    );
    const virtual = endpoints({ annotations: { k: 'v' } });
    const host = touch(await copyOf(virtual, patches), { annotations: { k: ' f-v ' } });
    const merged = await merge({ virtual, host, patches });
    expect([annotationOf(merged.host, 'k'), merged.isVirtualChanged]).toEqual(['f-v', false]);
  });

  test('toHost: a change on the host is reverted, a key that exists only on the host is kept and not synced', async () => {
    const patches = patchK('toHost', (value) => value && `f-${value}`);
    const virtual = endpoints({ annotations: { k: 'v' } });
    const host = touch(await copyOf(virtual, patches), { annotations: { k: 'x' } });
    const merged = await merge({ virtual, host, patches });
    expect([annotationOf(merged.host, 'k'), merged.isVirtualChanged]).toEqual(['f-v', false]);
    for (const record of [{}, LOST]) {
      const own = touch(await copyOf(endpoints({}), patches), { annotations: { k: 'x', ...record } });
      const kept = await merge({ virtual: endpoints({}), host: own, patches });
      expect([annotationOf(kept.host, 'k'), kept.isVirtualChanged]).toEqual(['x', false]);
    }
    const gone = await merge({ virtual: endpoints({}), host: await copyOf(virtual, patches), patches });
    expect(annotationOf(gone.host, 'k')).toBeUndefined();
  });

  test('toVirtual: the host keeps its own value, a change of it is synced back, the virtual value is not synced', async () => {
    const patches = patchK('toVirtual', undefined, (value) => value && `r-${value}`);
    const virtual = endpoints({ annotations: { k: 'v' } });
    const copy = await copyOf(virtual, patches);
    expect(annotationOf(copy, 'k')).toBeUndefined();
    const merged = await merge({ virtual, host: touch(copy, { annotations: { k: 'h' } }), patches });
    expect([annotationOf(merged.host, 'k'), annotationOf(merged.virtual, 'k')]).toEqual(['h', 'r-h']);
    const edited = touch(merged.virtual, { annotations: { k: 'edited' } });
    const after = await merge({ virtual: edited, host: merged.host, patches });
    expect([annotationOf(after.host, 'k'), after.isVirtualChanged]).toEqual(['h', false]);
    expect(annotationOf(after.host, MANAGED_ANNOTATIONS)).toBeUndefined();
    const lost = touch(copy, { annotations: { ...LOST, k: 'h' } });
    expect(annotationOf((await merge({ virtual: endpoints({}), host: lost, patches })).virtual, 'k')).toBe(
      'r-h',
    );
    expect((await merge({ virtual, host: lost, patches })).isVirtualChanged).toBe(false);
  });

  test('none: each side keeps its own value', async () => {
    const patches = patchK('none');
    const virtual = endpoints({ annotations: { k: 'v' } });
    const host = touch(await copyOf(virtual, patches), { annotations: { k: 'h' } });
    const merged = await merge({ virtual, host, patches });
    expect([annotationOf(merged.host, 'k'), merged.isVirtualChanged]).toEqual(['h', false]);
  });
});

describe('without a record', async () => {
  const virtual = endpoints({ labels: { l: '1' }, annotations: { a: '1', b: '1' } });
  const lost = touch(await copyOf(virtual), { annotations: LOST });

  test('the virtual side wins', async () => {
    const host = touch(lost, { labels: { l: 'h' }, annotations: { a: 'h', b: undefined } });
    const merged = await merge({ virtual, host });
    expect(merged.host.metadata.annotations).toEqual((await copyOf(virtual)).metadata.annotations);
    expect(merged.host.metadata.labels).toEqual((await copyOf(virtual)).metadata.labels);
    expect(merged.isVirtualChanged).toBe(false);
  });

  test('a key that the virtual side removed is deleted, a key that another client added is synced back', async () => {
    const host = touch(lost, { labels: { own: '1' }, annotations: { added: '1' } });
    const merged = await merge({ virtual: touch(virtual, { annotations: { b: undefined } }), host });
    expect(annotationOf(merged.host, 'b')).toBeUndefined();
    expect(merged.virtual.metadata.annotations).toEqual({ a: '1', added: '1' });
    expect(merged.host.metadata.labels?.['own']).toBeUndefined();
    expect(merged.virtual.metadata.labels).toEqual({ l: '1' });
  });

  test('keys are kept if the list of managed annotations is missing too', async () => {
    const host = touch(lost, { annotations: { added: '1', [MANAGED_ANNOTATIONS]: undefined } });
    const merged = await merge({ virtual: touch(virtual, { annotations: { b: undefined } }), host });
    expect(merged.virtual.metadata.annotations).toEqual({ a: '1', b: '1', added: '1' });
  });

  test('a key that exists on both sides without being managed is kept', async () => {
    const host = touch(lost, { annotations: { c: '1' } });
    const merged = await merge({ virtual: touch(virtual, { annotations: { c: '1' } }), host });
    expect(annotationOf(merged.host, MANAGED_ANNOTATIONS)).toBe('a\nb');
  });
});
