/** The workload without a sandbox process: `plain` calls a JavaScript function (the upper limit), `isolated-vm` calls into an isolate of this
 * process once per match (a naive implementation). Uses the protocol of `goja/main.go`.
 */

import { createInterface } from 'node:readline';
import ivm from 'isolated-vm';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { checkPatched, EXPRESSION, poolOf, VCLUSTER_NAME } from '../patch-work.ts';

interface Request {
  readonly peer: 'plain' | 'isolated-vm';
  readonly matches: number;
  readonly millis: number;
}

type Change = (value: JsonValue, object: JsonObject) => JsonValue;

function plain(value: JsonValue): JsonValue {
  return `${VCLUSTER_NAME}-${value as string}`;
}

/** One call per match, with value and context copied. */
function isolated(): Change {
  const isolate = new ivm.Isolate({ memoryLimit: 128 });
  const realm = isolate.createContextSync();
  const source = `(function (value, context) { return (${EXPRESSION}) })`;
  const call = realm.evalSync(source, { reference: true });
  return (value, object) => {
    const vcluster = { name: VCLUSTER_NAME, namespace: 'my-namespace', config: {} };
    const context = { vcluster, virtualObject: object, hostObject: null, path: '' };
    return call.applySync(undefined, [value, context], {
      arguments: { copy: true },
      result: { copy: true },
    }) as JsonValue;
  };
}

interface Address {
  readonly hostname?: JsonValue;
}

interface Subset {
  readonly addresses: readonly Address[];
}

/** Maps every hostname without modifying the input. */
function patch(object: JsonObject, change: Change): JsonObject {
  const subsets = (object['subsets'] as unknown as Subset[]).map((subset) => ({
    ...subset,
    addresses: subset.addresses.map((address) =>
      address.hostname === undefined ? address : { ...address, hostname: change(address.hostname, object) },
    ),
  }));
  return { ...object, subsets: subsets as unknown as JsonValue };
}

function measure({ peer, matches, millis }: Request): { objects: number; nanos: number } {
  const change = peer === 'plain' ? plain : isolated();
  const pool = poolOf(matches);
  const [first] = pool;
  if (first === undefined) throw new Error('no objects');
  checkPatched(patch(first, change), matches);
  const start = performance.now();
  let objects = 0;
  let elapsedMs = 0;
  do {
    for (let count = Math.max(1, 200 / matches); count > 0; count--) {
      patch(pool[objects++ % pool.length] ?? first, change);
    }
    elapsedMs = performance.now() - start;
  } while (elapsedMs < millis);
  return { objects, nanos: elapsedMs * 1e6 };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(measure(JSON.parse(line) as Request))}\n`);
}
