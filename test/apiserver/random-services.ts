/** Random Services, and what an operation on any input comes to. */

import fc from 'fast-check';
import { builtInTypes } from '../../src/embedded-cluster/kinds/built-in-kinds.ts';
import { decodeObject } from '../../src/apiserver/schema/decode.ts';
import type { JsonObject } from '../../src/base/json.ts';

export const types = builtInTypes();
export const SERVICE = types.get('Service');
export const label = fc.constantFrom('a', 'b', 'c');
export const labels = fc.dictionary(label, fc.constantFrom('1', '2'), { maxKeys: 3 });

export const port = fc.record(
  {
    port: fc.constantFrom(80, 81, 82),
    name: fc.constantFrom('x', 'y'),
    protocol: fc.constantFrom('TCP', 'UDP'),
  },
  { requiredKeys: ['port', 'protocol'] },
);
export const service = fc
  .record({
    labels,
    selector: labels,
    ports: fc.uniqueArray(port, { maxLength: 3, selector: ({ port: n, protocol }) => `${n}${protocol}` }),
  })
  .map(({ labels: metadataLabels, selector, ports }): JsonObject => ({
    metadata: { name: 's', labels: metadataLabels },
    spec: { selector, ports },
  }));

export function decoded(object: JsonObject): JsonObject {
  return decodeObject(SERVICE, object).value;
}

/** `fine`, or what kind of error it was. */
export function outcome(run: () => unknown): string {
  try {
    run();
    return 'fine';
  } catch (error) {
    return error instanceof Error ? error.name : 'no error';
  }
}
