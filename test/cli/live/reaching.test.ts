/** What live commands say when an API server refuses a request: which cluster, why, and what to do. */

import { expect, test } from 'vitest';
import { reaching } from '../../../src/cli/live/snapshot.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import { TransportError } from '../../../src/kube/types.ts';

function status(code: number, message: string): StatusError {
  const common = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' } as const;
  return new StatusError({ ...common, reason: 'Any', code, message });
}

test.each([
  [status(401, 'Unauthorized'), 'the host cluster: Unauthorized; renew the token or certificate there'],
  [
    status(403, 'endpoints is forbidden'),
    'the host cluster: endpoints is forbidden; grant what "endpoint-syncer rbac" prints to the user of the kubeconfig',
  ],
  [status(500, 'broken'), 'the host cluster: broken'],
  [new TransportError('no response'), 'cannot connect to the host cluster: no response'],
])('%s', async (error, message) => {
  await expect(reaching('host', () => Promise.reject(error))).rejects.toThrow(
    expect.objectContaining({ message }),
  );
});
