/** Protobuf messages as clients of an API server send them. */

/** A field of bytes: number, length, content. */
export function bytesField(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content as Buffer); // or from text
  return Buffer.concat([Buffer.from([(number << 3) | 2]), varint(bytes.length), bytes]);
}

/** A `runtime.Unknown` around the bytes of an object. */
export function envelope(apiVersion: string, kind: string, raw: Buffer): Buffer {
  const type = Buffer.concat([bytesField(1, apiVersion), bytesField(2, kind)]);
  return Buffer.concat([Buffer.from('k8s\0'), bytesField(1, type), bytesField(2, raw)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) | 128);
  }
}
