/** `--kind` of `status` and `diff`: a kind that no object can have is an error, not an empty list. */

import { expect, test } from 'vitest';
import { kindProblem } from '../../../src/syncer/rehearsal/kind-names.ts';
import { validConfig } from '../../cli/config/setup.ts';

const config = validConfig(`
sync:
  toHost:
    customResources: {gadgets.example.com: {enabled: true}}
    endpoints: {patches: [{path: metadata.annotations.a, reference: {apiVersion: example.com/v1, kind: Wheel}}]}
endpointSyncer: {name: vc, host: {namespace: team-a}}
`);

test.each(['Endpoints', 'endpointslices', 'Secret', 'Gadget', 'Wheel', undefined])(
  '%s is accepted',
  (kind) => {
    expect(kindProblem(config, kind)).toBeUndefined();
  },
);

test.each([
  ['Endpoint', '--kind: unknown kind "Endpoint", did you mean "Endpoints"?'],
  ['Unheard', '--kind: unknown kind "Unheard"; neither is it synced, nor does a patch reference it'],
])('%s is an error', (kind, message) => {
  expect(kindProblem(config, kind)).toBe(message);
});
