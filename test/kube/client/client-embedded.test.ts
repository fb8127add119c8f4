/** The contract of the client against the embedded API server. */

import { startEmbeddedCluster } from '../../../src/embedded-cluster/embedded-cluster.ts';
import { plainAccess } from '../../../src/kube/access.ts';
import { clientContract } from './client-contract.ts';

clientContract('an embedded API server', async () => {
  const cluster = await startEmbeddedCluster({ name: 'contract', token: 'secret' });
  return {
    access: plainAccess(cluster.url, 'secret'),
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
});
