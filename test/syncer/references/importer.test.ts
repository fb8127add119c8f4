/** A referenced object is mirrored to the side that lacks it for as long as it is referenced, and corrected there. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { failure } from '../../../src/kube/status-error.ts';
import {
  changesOf,
  clustersAfter,
  object,
  rehearsed,
  WITH_REFERENCES,
  type Clusters,
} from '../memory-world.ts';

const DATA = { data: { a: 'YQ==' } };
const referrer = object({ annotations: { secret: 'tls' } });
const secret = object({ name: 'tls', uid: 's' }, DATA);
const ofHost = object({ name: 'tls', namespace: 'host', uid: 's' }, DATA);

const run = (clusters: Clusters) => rehearsed(clusters, {}, WITH_REFERENCES);
/** Without the changes of the referrer and its copy. */
const imports = async (clusters: Clusters): Promise<string[]> =>
  changesOf(await run(clusters)).filter((change) => !/ (shop|host)\/web/u.test(change));

describe('an object of the virtual cluster', async () => {
  const result = await run({ virtual: { Endpoints: [referrer], Secret: [secret] } });
  const synced = clustersAfter(result);
  const [copy = secret] = synced.host.Secret ?? [];
  const key = `host/${copy.metadata.name}`;

  test('is imported into the host with its content, under the name that the copy has', async () => {
    expect(changesOf(result)).toContain(`host ${key} created: is referenced`);
    expect(copy['data']).toEqual(DATA.data);
    expect(synced.host.Endpoints?.[0]?.metadata.annotations?.['secret']).toBe(copy.metadata.name);
    expect(changesOf(await run(synced))).toEqual([]);
  });

  const changed = { data: { a: 'Yg==' } };
  test.each<[string, Clusters, readonly string[]]>([
    [
      'follows its original',
      { ...synced, virtual: { Endpoints: [referrer], Secret: [{ ...secret, ...changed }] } },
      [`host ${key} updated: differs from the virtual object`],
    ],
    [
      'is corrected on the host',
      { ...synced, host: { ...synced.host, Secret: [{ ...copy, ...changed }] } },
      [`host ${key} updated: differs from the virtual object`],
    ],
    [
      'is created again',
      { ...synced, host: { ...synced.host, Secret: [] } },
      [`host ${key} created: is referenced`],
    ],
    [
      'is deleted with the last reference',
      { ...synced, virtual: { Endpoints: [object()], Secret: [secret] } },
      [`host ${key} deleted: no longer referenced`],
    ],
    [
      'is kept for another reference',
      {
        ...synced,
        virtual: {
          Endpoints: [object(), object({ name: 'web2', uid: 'uid-2', annotations: { secret: 'tls' } })],
          Secret: [secret],
        },
      },
      [],
    ],
    [
      'is deleted with its original',
      { ...synced, virtual: { Endpoints: [referrer] } },
      [`host ${key} deleted: no longer imported`],
    ],
  ])('its copy %s', async (_, clusters, changes) => {
    expect(await imports(clusters)).toEqual(changes);
  });

  test('whose change the host refuses for another reason than that it is immutable keeps its copy', async () => {
    const clusters = { ...synced, virtual: { Endpoints: [referrer], Secret: [{ ...secret, ...changed }] } };
    const admit = (plural: string, given: KubeObject, previous?: KubeObject): KubeObject => {
      const note = 'ValidatingAdmissionPolicy "secrets" denied the request: no such content';
      if (plural === 'secrets' && previous !== undefined) throw failure(422, 'Invalid', note);
      return given;
    };
    const result = await rehearsed(clusters, { admit }, WITH_REFERENCES);
    expect(changesOf(result)).toEqual([]);
    expect(result.events.map(({ reason }) => reason)).toContain('SyncError');
  });

  test('is not written over an object of another client', async () => {
    const foreign: KubeObject = { ...ofHost, metadata: { ...ofHost.metadata, name: copy.metadata.name } };
    const { events } = await run({ ...synced, host: { Secret: [foreign] } });
    expect(await imports({ ...synced, host: { Secret: [foreign] } })).toEqual([]);
    expect(events.map(({ reason }) => reason)).toContain('NotManaged');
  });
});

describe('an object of the host', async () => {
  const synced = clustersAfter(await run({ virtual: { Endpoints: [referrer] }, host: { Secret: [ofHost] } }));

  test('is imported under its own name with its content, and never exported again', async () => {
    const [copy] = synced.virtual.Secret ?? [];
    expect([copy?.metadata.name, copy?.metadata.namespace, copy?.['data']]).toEqual([
      'tls',
      'shop',
      DATA.data,
    ]);
    expect(synced.host.Endpoints?.[0]?.metadata.annotations?.['secret']).toBe('tls');
    expect(changesOf(await run(synced))).toEqual([]);
  });

  test('is deleted from the virtual cluster with the last reference, and when it is gone', async () => {
    const { Secret = [] } = synced.virtual;
    expect(await imports({ ...synced, virtual: { Endpoints: [object()], Secret } })).toEqual([
      'virtual shop/tls deleted: no longer referenced',
    ]);
    expect(await imports({ ...synced, host: { ...synced.host, Secret: [] } })).toEqual([
      'virtual shop/tls deleted: no longer imported',
    ]);
  });

  test('with keys of a control plane is read, and not imported', async () => {
    const keys = { ...ofHost, data: { 'sa.key': 'YQ==' } };
    expect(await imports({ virtual: { Endpoints: [referrer] }, host: { Secret: [keys] } })).toEqual([]);
  });
});
