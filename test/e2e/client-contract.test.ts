/** The contract of the client against a real kube-apiserver. */

import { inject } from 'vitest';
import { loadClusterAccess } from '../../src/kube/credentials/kubeconfig.ts';
import { systemClock } from '../../src/base/clock.ts';
import { clientContract } from '../kube/client/client-contract.ts';

clientContract('a kube-apiserver', async () => {
  const source = { kubeconfig: inject('clusters').virtual.kubeconfigPath, context: '' };
  return {
    access: loadClusterAccess(source, { clock: systemClock }),
    [Symbol.asyncDispose]: async () => undefined,
  };
});
