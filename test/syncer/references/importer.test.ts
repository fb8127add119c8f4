/** What the importer does beyond the decisions of `decide-reference.ts`: changes that the host refuses, and the look into an object of the host. */

import { expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { failure } from '../../../src/kube/status-error.ts';
import { changesOf, clustersAfter, object, rehearsed, WITH_REFERENCES } from '../memory-world.ts';

const referrer = object({ annotations: { secret: 'tls' } });
const secret = object({ name: 'tls', uid: 's' }, { data: { a: 'YQ==' } });

test('an object whose change the host refuses for another reason than that it is immutable keeps its copy', async () => {
  const first = await rehearsed(
    { virtual: { Endpoints: [referrer], Secret: [secret] } },
    {},
    WITH_REFERENCES,
  );
  const changed = { ...secret, data: { a: 'Yg==' } };
  const clusters = { ...clustersAfter(first), virtual: { Endpoints: [referrer], Secret: [changed] } };
  const admit = (plural: string, given: KubeObject, previous?: KubeObject): KubeObject => {
    const note = 'ValidatingAdmissionPolicy "secrets" denied the request: no such content';
    if (plural === 'secrets' && previous !== undefined) throw failure(422, 'Invalid', note);
    return given;
  };
  const result = await rehearsed(clusters, { admit }, WITH_REFERENCES);
  expect(clustersAfter(first).host.Secret).toHaveLength(1);
  expect(changesOf(result)).toEqual([]);
  expect(result.events.map(({ reason }) => reason)).toContain('SyncError');
});

test('an object of the host with keys of a control plane is read, and not imported', async () => {
  const importedFrom = async (data: object) => {
    const ofHost = object({ name: 'tls', namespace: 'host', uid: 's' }, { data });
    const clusters = { virtual: { Endpoints: [referrer] }, host: { Secret: [ofHost] } };
    return clustersAfter(await rehearsed(clusters, {}, WITH_REFERENCES)).virtual.Secret?.map(
      (copy) => copy['data'],
    );
  };
  expect(await importedFrom({ a: 'YQ==' })).toEqual([{ a: 'YQ==' }]);
  expect(await importedFrom({ 'sa.key': 'YQ==' })).toEqual([]);
});
