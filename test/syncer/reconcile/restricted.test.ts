/** The refusal of OpenShift's RestrictedEndpointsAdmission names no right; the Event does. */

import { expect, test } from 'vitest';
import { StatusError } from '../../../src/kube/status-error.ts';
import { outcomeOf } from '../../../src/syncer/reconcile/controller.ts';

function refusal(message: string, details: { kind: string; group?: string }, code = 403): string {
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    reason: 'Forbidden',
    code,
  } as const;
  const error = new StatusError({ ...status, message, details: { name: 'db', ...details } });
  error.cluster = 'host';
  return outcomeOf(error, 0, '').warning?.note ?? '';
}

test.each([
  ['endpoints', undefined, 'endpoint address 10.128.0.5 is not allowed', 'endpoints/restricted for it'],
  [
    'endpointslices',
    'discovery.k8s.io',
    'endpoint address fd01::5 is not allowed',
    'endpointslices/restricted of discovery.k8s.io for it',
  ],
  [
    'endpointslices',
    'discovery.k8s.io',
    'endpoint port TCP:22623 is not allowed',
    'endpointslices/restricted of discovery.k8s.io for it',
  ],
])('%s of %s: %s', (kind, group, why, right) => {
  const note = refusal(`${kind} "db" is forbidden: ${why}`, { kind, ...(group && { group }) });
  expect(note).toBe(
    `Writing to the host failed and is retried: ${kind} "db" is forbidden: ${why}. ` +
      `OpenShift demands the right to create ${right}: add it to rbac.extraRules of the chart`,
  );
});

test('another refusal, or another code, names no right', () => {
  const kind = 'endpoints';
  expect(refusal('endpoints "db" is forbidden: exceeded quota', { kind })).not.toContain('OpenShift');
  expect(refusal('endpoint address 10.0.0.1 is not allowed', { kind }, 422)).not.toContain('OpenShift');
});
