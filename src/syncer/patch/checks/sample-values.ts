/** The type of the values at a path and sample values, as far as the path determines them. */

import type { JsonValue } from '../../../base/json.ts';
import type { Segment } from '../paths/path-syntax.ts';

/** Values of annotations and labels are strings, ports are numbers. */
export function valueTypeOf(segments: readonly Segment[]): 'string' | 'number' | undefined {
  const keys = segments.map((segment) => (segment.kind === 'key' ? segment.key : ''));
  const isMapEntry = keys.length === 3 && (keys[1] === 'annotations' || keys[1] === 'labels');
  if (keys[0] === 'metadata' && isMapEntry) return 'string';
  return keys.at(-3) === 'ports' && keys.at(-1) === 'port' ? 'number' : undefined;
}

const LABELS = ['checkout', 'web', 'team-a', 'edge-team-web', 'a-b-c', '7'];
const ADDRESSES = ['10.0.0.1', '192.0.2.17'];
const TEXTS = [...LABELS, ...ADDRESSES, 'Web', 'example.com/path', 'a,b', 'a b'];
const PORTS = [80, 443, 8080, 10_080];
/** Fields of Endpoints and EndpointSlices that hold DNS labels. */
const LABEL_FIELDS: ReadonlySet<string> = new Set(['hostname', 'name', 'nodeName', 'zone']);

/** Empty if the path can match values of any type. */
export function sampleValues(segments: readonly Segment[]): readonly JsonValue[] {
  const type = valueTypeOf(segments);
  if (type !== undefined) return type === 'string' ? TEXTS : PORTS;
  const [above, last] = [segments.at(-2), segments.at(-1)];
  if (last?.kind === 'key' && LABEL_FIELDS.has(last.key)) return LABELS;
  const isAddress =
    last?.kind === 'key' ? last.key === 'ip' : above?.kind === 'key' && above.key === 'addresses';
  return isAddress && segments[0]?.kind === 'key' && (last?.kind === 'key' || segments[0].key === 'endpoints')
    ? ADDRESSES
    : [];
}
