import { inject } from 'vitest';
import { loadClusterAccess } from '../../src/cluster/kubeconfig.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { clientContract } from '../cluster/client-contract.ts';

clientContract('a kube-apiserver', async () => {
  const source = { kubeconfig: inject('clusters').virtual.kubeconfigPath, context: '' };
  return {
    access: loadClusterAccess(source, { clock: systemClock }),
    [Symbol.asyncDispose]: async () => undefined,
  };
});
