/** `--kind` of `status` and `diff`: a kind that no object can have is an error, not an empty list. */

import { expect, test, vi } from 'vitest';
import { reportUnknownKind } from '../../src/cli/kind-scope.ts';
import { validConfig } from './config/setup.ts';

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
    expect(reportUnknownKind(config, kind)).toBe(false);
  },
);

test.each([
  ['Endpoint', 'error: --kind: unknown kind "Endpoint", did you mean "Endpoints"?\n'],
  ['Unheard', 'error: --kind: unknown kind "Unheard"; neither is it synced, nor does a patch reference it\n'],
])('%s is an error', (kind, message) => {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    expect(reportUnknownKind(config, kind)).toBe(true);
    expect(write.mock.calls).toEqual([[message]]);
  } finally {
    write.mockRestore();
  }
});
