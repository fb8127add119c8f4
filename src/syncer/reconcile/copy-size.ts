/** How large an object may be of which there is a copy, and which objects are so large that others get a turn of the event loop between two steps. */

import { setImmediate } from 'node:timers/promises';
import { TerminalError } from '../../base/errors.ts';
import { textLengthOf } from '../../base/json.ts';
import { asJson, type KubeObject, type StringMap } from '../../kube/object.ts';

/** Of the body of a request: kube-apiserver 1.36 answers "Request entity too large: limit is 3145728". */
const BODY_BYTES_MAX = 3 * 1024 * 1024;
/** Of keys and values together: Kubernetes' limit for annotations. It has none for labels, of which each takes as long. */
const MAP_BYTES_MAX = 256 * 1024;
const LARGE_BYTES = 64 * 1024;

/** Throws a `TerminalError` if the copy would be more than the host's API server accepts, before it takes any work. */
export function checkCopySize(virtual: KubeObject): void {
  const { annotations = {}, labels = {} } = virtual.metadata;
  for (const [name, map] of Object.entries({ annotations, labels }))
    if (isBeyond(map, MAP_BYTES_MAX))
      throw new TerminalError(
        `its ${name} have more than ${MAP_BYTES_MAX} bytes, keys and values together: remove some`,
      );
  const copied = { ...asJson(virtual), metadata: { annotations, labels } };
  if (textLengthOf(copied, BODY_BYTES_MAX) > BODY_BYTES_MAX)
    throw new TerminalError(
      `it has more than ${BODY_BYTES_MAX} bytes, and no API server accepts more: divide it into several objects`,
    );
}

function isBeyond(map: Readonly<StringMap>, bytesMax: number): boolean {
  let bytes = 0;
  for (const key in map) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(map[key] ?? '');
    if (bytes > bytesMax) return true;
  }
  return false;
}

/** Lets others have a turn of the event loop; undefined for an object on which each step is short. */
export function pausesFor(object: KubeObject): (() => Promise<void>) | undefined {
  return textLengthOf(asJson(object), LARGE_BYTES) > LARGE_BYTES ? () => setImmediate() : undefined;
}
