/** The contract of the client against a real kube-apiserver. */

import { loadClusterAccess } from '../../src/kube/credentials/kubeconfig.ts';
import { systemClock } from '../../src/base/clock.ts';
import { clientContract } from '../kube/client/client-contract.ts';
import { suiteClusters } from './suite-clusters.ts';

clientContract('a kube-apiserver', async () => {
  const source = { kubeconfig: suiteClusters().virtual.kubeconfigPath, context: '' };
  return {
    access: loadClusterAccess(source, { clock: systemClock }),
    [Symbol.asyncDispose]: async () => undefined,
  };
});
