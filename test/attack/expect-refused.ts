/** What holds when the import of a referenced object is not allowed. */

import { expect } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import { named, NOTES, short } from '../scenarios/reference-objects.ts';
import type { Shared } from '../scenarios/shared-world.ts';

/** References the object from a tenant's namespace. Expects an Event, a rewritten name, no import, and an unchanged original; returns the note of the Event. */
export async function expectRefused(
  { world, daemon, namespace }: Shared,
  name: string,
  original: KubeObject,
): Promise<string> {
  const ns = await namespace();
  await world.virtual.create('Endpoints', named(`${ns}/thief`, { secret: name }));
  const note = await world.whenEvent(`${ns}/thief`, 'ReferenceNotAllowed');
  await world.whenCopy(
    `${ns}/thief`,
    ({ metadata }) => metadata.annotations?.[NOTES.secret] === short(world, `${ns}/${name}`)[1],
  );
  await world.settle(daemon);
  expect(await world.virtual.find('Secret', ns, name)).toBeUndefined();
  const { namespace: hostNamespace = '', resourceVersion } = original.metadata;
  const now = await world.host.get('Secret', hostNamespace, name);
  expect(now.metadata.uid).toBe(original.metadata.uid);
  // The host sets the data of a token.
  const isToken = now['type'] === 'kubernetes.io/service-account-token';
  expect(isToken || now.metadata.resourceVersion === resourceVersion).toBe(true);
  return note;
}
