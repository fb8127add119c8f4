/** The credentials of a cluster, or the certificate of its API server, are replaced while the daemon runs: wherever it has its access from, it goes on
 * with what is there now. */

import { describe, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { ClusterName } from '../../src/kube/types.ts';
import { eventually } from '../support/eventually.ts';
import { TlsGate } from './tls-gate.ts';
import type { NewWorld, World } from './world.ts';

interface Source {
  readonly config: (world: World, cluster: ClusterName) => JsonObject;
  /** Puts the access that is accepted now where the daemon finds it. */
  readonly put: (world: World, gate: TlsGate) => Promise<void>;
}

const inSecret: Source = {
  config: () => ({ kubeconfig: '', secret: 'vc-access' }),
  async put(world, gate) {
    const metadata = { namespace: world.hostNamespace, name: 'vc-access' };
    const data = { config: Buffer.from(gate.kubeconfig()).toString('base64') };
    const found = await world.host.find('Secret', metadata.namespace, metadata.name);
    if (found === undefined) await world.host.create('Secret', { metadata, data });
    else await world.host.merge('Secret', [metadata.namespace, metadata.name], { data });
  },
};

const inFile: Source = {
  config: (world) => ({ kubeconfig: `${world.directory}/access.kubeconfig` }),
  put: (world, gate) => Promise.resolve(void world.file('access.kubeconfig', gate.kubeconfig())),
};

const inTokenFile: Source = {
  config: inFile.config,
  put(world, gate) {
    const tokenFile = world.file('token', gate.token);
    return Promise.resolve(void world.file('access.kubeconfig', gate.kubeconfig({ tokenFile })));
  },
};

type Replaced = 'token' | 'certificate';

/** `late`: the API server refuses what was accepted before the new content is where the daemon finds it. */
const ROTATIONS: readonly (readonly [string, ClusterName, Source, Replaced, 'late'?])[] = [
  ['the token in a kubeconfig file', 'virtual', inFile, 'token'],
  ['the token in a kubeconfig file, late', 'virtual', inFile, 'token', 'late'],
  ['the token in a file of its own', 'virtual', inTokenFile, 'token'],
  ['the authority in a kubeconfig file', 'virtual', inFile, 'certificate'],
  ['the authority in a kubeconfig file, late', 'virtual', inFile, 'certificate', 'late'],
  ['the token in a Secret of the host', 'virtual', inSecret, 'token'],
  ['the token in a Secret of the host, late', 'virtual', inSecret, 'token', 'late'],
  ['the authority in a Secret of the host', 'virtual', inSecret, 'certificate'],
  ['the authority in a Secret of the host, late', 'virtual', inSecret, 'certificate', 'late'],
  ['the token in a kubeconfig file of the host', 'host', inFile, 'token'],
  ['the authority in a kubeconfig file of the host', 'host', inFile, 'certificate'],
];

export function rotationScenarios(newWorld: NewWorld): void {
  describe('replaced while the daemon runs', () => {
    test.for(ROTATIONS)('%s', async ([, cluster, source, replaced, late], { expect }) => {
      await using world = await newWorld();
      const gate = world.keep(await TlsGate.open(world[cluster].kubeconfigPath));
      await source.put(world, gate);
      const namespace = world.hostNamespace;
      const access = { ...(cluster === 'host' && { namespace }), ...source.config(world, cluster) };
      const daemon = await world.startSync({ config: { endpointSyncer: { [cluster]: access } } });
      await world.createVirtual('default/before');
      await world.whenCopied('default/before');

      if (replaced === 'token') gate.replaceToken();
      else await gate.replaceCertificate();
      if (late !== undefined)
        await eventually(
          () => gate.refused,
          (refused) => refused > 0,
        );
      await source.put(world, gate);
      await world.createVirtual('default/after');
      await world.mergeVirtual('default/before', { metadata: { annotations: { changed: '1' } } });
      await world.whenCopied('default/after');
      const copy = await world.whenCopied('default/before');
      expect(copy.metadata.annotations?.['changed']).toBe('1');
      await world.settle(daemon);
    });
  });
}
