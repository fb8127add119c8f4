/** Encodes objects of the store as Secrets, and decodes them. */

import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import type { KubeObject, StringMap } from '../../../../kube/object.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../base/json.ts';
import { orderedKey, type StoredEntry, type StoreKey } from '../../store.ts';
import { failure } from '../host/host-errors.ts';
import type { SecretNames } from './secret-names.ts';

/** An object as its Secret holds it. */
export interface Held {
  readonly entry: StoredEntry;
  /** The id of the write that created this state, so that a writer recognizes its own writes. */
  readonly writeId: string;
  /** Bytes of the JSON text. */
  readonly bytes: number;
}

export type Decoded =
  | ({ readonly state: 'held' } & Held)
  /** The Secret is being deleted but has a finalizer: for the store, the object does not exist. */
  | { readonly state: 'terminating' }
  /** Another program has changed what only the store may change. */
  | { readonly state: 'damaged'; readonly why: string };

/** `type` of the Secrets that hold objects. */
export const OBJECT_TYPE = 'endpoint-syncer/object';
const WRITE_ID = 'endpoint-syncer/write';
const FIELD = 'object';
/** Kubernetes' limit for everything that a Secret holds, `core.MaxSecretSize`. */
const SECRET_BYTES_MAX = 1024 * 1024;
/** Smaller objects are not compressed, so that `kubectl` and `base64 -d` show them. */
const PLAIN_BYTES_MAX = 16 * 1024;
/** The limit of a decompressed Secret. */
const TEXT_BYTES_MAX = 16 * 1024 * 1024;

/** Throws a `StatusError` (413) for an object that is larger than a Secret. */
export async function encodeSecret(
  names: SecretNames,
  { key, value, writeId }: { key: StoreKey; value: JsonObject; writeId: string },
): Promise<KubeObject> {
  const text = JSON.stringify({ ...key, value });
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: names.object(key),
      labels: names.objectLabels(key),
      annotations: { [WRITE_ID]: writeId },
    },
    type: OBJECT_TYPE,
    data: { [FIELD]: (await packed(key, text)).toString('base64') },
  };
}

/** The merge patch of an update; it keeps labels, annotations and finalizers of other programs. */
export function updatePatch(secret: KubeObject, expectedRevision: number): JsonObject {
  const { annotations = {} } = secret.metadata;
  return {
    metadata: { resourceVersion: String(expectedRevision), annotations },
    data: secret['data'] as JsonObject, // set above
  };
}

/** Decodes data of a Secret, compressed or plain. Throws the errors of zlib. */
export function unpack(base64: string): string {
  const bytes = Buffer.from(base64, 'base64');
  const isCompressed = bytes[0] === 0x1f && bytes[1] === 0x8b; // JSON begins with neither
  return (isCompressed ? gunzipSync(bytes, { maxOutputLength: TEXT_BYTES_MAX }) : bytes).toString('utf8');
}

/** Encodes text as data of a Secret; undefined when it is too large. */
export async function pack(text: string): Promise<Buffer | undefined> {
  const plain = Buffer.from(text);
  if (plain.length > TEXT_BYTES_MAX) return undefined;
  const bytes = plain.length <= PLAIN_BYTES_MAX ? plain : await promisify(gzip)(plain);
  return bytes.length <= SECRET_BYTES_MAX ? bytes : undefined;
}

/** The resourceVersion of the Secret as a number: versions of Kubernetes are increasing numbers, see KEP-5504. */
export function revisionOf({ metadata }: KubeObject): number {
  return parseRevision(metadata.resourceVersion ?? '');
}

/** Identifies the write that created this state. */
export function writeIdOf({ metadata }: KubeObject): string {
  return metadata.annotations?.[WRITE_ID] ?? '';
}

/** Throws for a resourceVersion that is not a number: it could not be compared. */
export function parseRevision(version: string): number {
  const revision = Number(version);
  if (/^\d+$/.test(version) && Number.isSafeInteger(revision)) return revision;
  throw new Error(
    `the host cluster has the resourceVersion ${JSON.stringify(version)}; the store needs integers, as etcd assigns them`,
  );
}

/** `known`: the cached state; the same revision is not decoded twice. */
export function decodeSecret(names: SecretNames, secret: KubeObject, known?: Held): Decoded {
  const { name, labels = {}, deletionTimestamp } = secret.metadata;
  if (deletionTimestamp !== undefined) return { state: 'terminating' };
  const revision = revisionOf(secret);
  const writeId = writeIdOf(secret);
  // A restored host assigns revisions again.
  if (known?.entry.revision === revision && known.writeId === writeId) return { state: 'held', ...known };
  if (secret['type'] !== OBJECT_TYPE) return { state: 'damaged', why: `its type is not ${OBJECT_TYPE}` };
  const read = readDocument(secret);
  if (typeof read === 'string') return { state: 'damaged', why: read };
  const { key, value, bytes } = read;
  if (names.object(key) !== name) {
    return { state: 'damaged', why: `it holds ${key.resource} ${orderedKey(key)}, which has another name` };
  }
  if (!hasLabels(labels, names.objectLabels(key))) {
    return { state: 'damaged', why: `its labels are not those of ${key.resource} ${orderedKey(key)}` };
  }
  return { state: 'held', entry: { key, value, revision }, writeId, bytes };
}

function readDocument(
  secret: KubeObject,
): string | { readonly key: StoreKey; readonly value: JsonObject; readonly bytes: number } {
  const data = secret['data'];
  const base64 = isJsonObject(data) ? data[FIELD] : undefined;
  if (typeof base64 !== 'string') return `it has no data.${FIELD}`;
  let document: JsonValue;
  let text: string;
  try {
    text = unpack(base64);
    document = JSON.parse(text) as JsonValue; // JSON text is a JSON value
  } catch {
    return `data.${FIELD} is not JSON`; // the error would quote the text, which may be secret
  }
  if (!isJsonObject(document)) return `data.${FIELD} is not an object`;
  const { resource, namespace, name, value } = document;
  if (typeof resource !== 'string' || typeof namespace !== 'string' || typeof name !== 'string') {
    return `data.${FIELD} has no resource, namespace or name`;
  }
  if (!isJsonObject(value)) return `data.${FIELD} has no value`;
  return { key: { resource, namespace, name }, value, bytes: text.length };
}

function hasLabels(actual: StringMap, wanted: StringMap): boolean {
  return Object.entries(wanted).every(([label, value]) => actual[label] === value);
}

async function packed(key: StoreKey, text: string): Promise<Buffer> {
  const bytes = await pack(text);
  if (bytes !== undefined) return bytes;
  throw failure({
    reason: 'RequestEntityTooLarge',
    code: 413,
    message:
      `${key.resource} ${JSON.stringify(key.name)} is too large for the store: a Secret holds at most ${SECRET_BYTES_MAX} bytes, ` +
      'and even the compressed object is larger; make the object smaller',
  });
}
