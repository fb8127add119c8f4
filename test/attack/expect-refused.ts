/** What holds when the import of a referenced object is not allowed. */

import { expect } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import { named, NOTES, short } from '../scenarios/reference-objects.ts';
import type { RunningDaemon } from '../scenarios/running-daemon.ts';
import { eventually } from '../support/eventually.ts';
import type { Shared } from '../scenarios/shared-world.ts';

/** What the log says about a refused object of the host, which an Event does not tell the tenant. */
export async function refusalInLog(daemon: RunningDaemon, name: string): Promise<string> {
  const notes = await eventually(
    async () =>
      daemon.log.flatMap(({ msg, note }) =>
        msg === 'a referenced object of the host is refused' && String(note).includes(`/${name}"`)
          ? [String(note)]
          : [],
      ),
    (found) => found.length > 0,
    { what: `a refusal of ${name} in the log` },
  );
  return notes[0] ?? '';
}

/**
 * References the object from a tenant's namespace. Expects the Event of an object that does not exist, a rewritten name, no import, and an
 * unchanged original; returns why it was refused.
 */
export async function expectRefused(
  { world, daemon, namespace }: Shared,
  name: string,
  original: KubeObject,
): Promise<string> {
  const ns = await namespace();
  await world.virtual.create('Endpoints', named(`${ns}/thief`, { secret: name }));
  await world.virtual.create('Endpoints', named(`${ns}/nothing`, { secret: 'nothing' }));
  const told = await world.whenEvent(`${ns}/thief`, 'ReferenceNotFound');
  const toldOfNothing = await world.whenEvent(`${ns}/nothing`, 'ReferenceNotFound');
  expect(told).toBe(toldOfNothing.replace('nothing', name));
  const note = await refusalInLog(daemon, name);
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
