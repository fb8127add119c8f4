/** How often the objects that name a reference are told what hinders it. */

import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/base/logger.ts';
import { ENDPOINTS, parseKey, type KubeObject } from '../../../src/kube/object.ts';
import { referrerIdOf, ReferenceIndex } from '../../../src/syncer/references/reference-index.ts';
import { ReferenceNotices } from '../../../src/syncer/references/reference-notices.ts';

const TLS = 'v1 Secret shop/tls';
const ABSENT = { reason: 'ReferenceNotFound', note: 'absent' } as const;
const EXCLUDED = { reason: 'ReferenceNotAllowed', note: 'excluded' } as const;

/** `add`: Endpoints that name the Secret, with this uid. `events`: name, uid and note of each. */
function world() {
  const [uids, events] = [new Map<string, string>(), [] as string[]];
  const get = (key: string): KubeObject => ({ metadata: { ...parseKey(key), uid: uids.get(key) ?? '' } });
  const lister = { get, list: () => [] };
  const kind = { kind: { resource: ENDPOINTS }, virtual: lister, host: lister, enqueue: () => undefined };
  const index = new ReferenceIndex([kind], { toHost: (name) => name });
  const recorder = {
    event: (
      { metadata: { name, uid } }: KubeObject,
      _resource: unknown,
      { note }: { readonly note: string },
    ) => void events.push(`${name} ${uid} ${note}`),
    flush: () => Promise.resolve(),
  };
  const notices = new ReferenceNotices({ recorder, logger: silentLogger }, index);
  const secret = { apiVersion: 'v1', kind: 'Secret', namespace: 'shop', name: 'tls' };
  const add = (name: string, uid: string): void => {
    uids.set(`shop/${name}`, uid);
    const reference = { patchIndex: 0, path: '', ...secret, written: { namespace: 'host', name: 'tls' } };
    index.record(referrerIdOf(ENDPOINTS, `shop/${name}`), [reference]);
  };
  return { events, notices, add };
}

type World = ReturnType<typeof world>;

test.each<[what: string, happens: (world: World) => void, told: readonly string[]]>([
  ['nothing else', () => undefined, []],
  ['another object names it', ({ add }) => add('db', '2'), ['db 2 absent']],
  ['the object is created again', ({ add }) => add('web', '2'), ['web 2 absent']],
  ['it is solved, and comes back', ({ notices }) => notices.problem(TLS, undefined), ['web 1 absent']],
  [
    'it was another one in between',
    ({ notices }) => notices.problem(TLS, EXCLUDED),
    ['web 1 excluded', 'web 1 absent'],
  ],
])('a problem that stays is told once to each object: %s', (_what, happens, told) => {
  const all = world();
  all.add('web', '1');
  for (const _pass of [1, 2]) all.notices.problem(TLS, ABSENT);
  happens(all);
  for (const _pass of [1, 2]) all.notices.problem(TLS, ABSENT);
  expect(all.events).toEqual(['web 1 absent', ...told]);
});
