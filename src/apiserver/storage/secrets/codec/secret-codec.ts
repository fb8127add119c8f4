/** An object of the store as a Secret, and back. */

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
  /** Names the write that made this state, so that a writer knows its own work again. */
  readonly writeId: string;
  /** Of the JSON text: what it costs to remember. */
  readonly bytes: number;
}

export type Decoded =
  | ({ readonly state: 'held' } & Held)
  /** Its deletion has begun, and a finalizer that somebody put on the Secret holds it back: to us it is gone. */
  | { readonly state: 'terminating' }
  /** Somebody else has changed what only the store may change. */
  | { readonly state: 'damaged'; readonly why: string };

/** `type` of the Secrets that hold objects. */
export const OBJECT_TYPE = 'endpoint-syncer/object';
const WRITE_ID = 'endpoint-syncer/write';
const FIELD = 'object';
/** Kubernetes' limit for everything that a Secret holds, `core.MaxSecretSize`. */
const SECRET_BYTES_MAX = 1024 * 1024;
/** Smaller ones stay readable for `kubectl` and `base64 -d`. */
const PLAIN_BYTES_MAX = 16 * 1024;
/** A Secret cannot unfold to more than this. */
const TEXT_BYTES_MAX = 16 * 1024 * 1024;

/** Throws a `StatusError` (413) for what no Secret can hold. */
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

/** What an update changes; labels, annotations and finalizers that others put on the Secret stay. */
export function updatePatch(secret: KubeObject, expectedRevision: number): JsonObject {
  const { annotations = {} } = secret.metadata;
  return {
    metadata: { resourceVersion: String(expectedRevision), annotations },
    data: secret['data'] as JsonObject, // made above
  };
}

/** `compressed` or plain text → text, for everything the store keeps in a Secret. Throws what zlib throws. */
export function unpack(base64: string): string {
  const bytes = Buffer.from(base64, 'base64');
  const isCompressed = bytes[0] === 0x1f && bytes[1] === 0x8b; // JSON begins with neither
  return (isCompressed ? gunzipSync(bytes, { maxOutputLength: TEXT_BYTES_MAX }) : bytes).toString('utf8');
}

/** Text as a Secret keeps it; undefined when that is more than it can. */
export async function pack(text: string): Promise<Buffer | undefined> {
  const plain = Buffer.from(text);
  if (plain.length > TEXT_BYTES_MAX) return undefined;
  const bytes = plain.length <= PLAIN_BYTES_MAX ? plain : await promisify(gzip)(plain);
  return bytes.length <= SECRET_BYTES_MAX ? bytes : undefined;
}

/** The Secret's own revision: Kubernetes' versions are numbers that grow, see KEP-5504. */
export function revisionOf({ metadata }: KubeObject): number {
  return parseRevision(metadata.resourceVersion ?? '');
}

/** Throws for a server whose versions are no numbers: they could not be compared. */
export function parseRevision(version: string): number {
  const revision = Number(version);
  if (/^\d+$/.test(version) && Number.isSafeInteger(revision)) return revision;
  throw new Error(
    `the host cluster counts its versions by ${JSON.stringify(version)}; the store needs whole numbers, as etcd gives them`,
  );
}

/** `known`: the state that the cache holds; the same revision is not read twice. */
export function decodeSecret(names: SecretNames, secret: KubeObject, known?: Held): Decoded {
  const { name, labels = {}, deletionTimestamp } = secret.metadata;
  if (deletionTimestamp !== undefined) return { state: 'terminating' };
  const revision = revisionOf(secret);
  if (known !== undefined && known.entry.revision === revision) return { state: 'held', ...known };
  if (secret['type'] !== OBJECT_TYPE) return { state: 'damaged', why: `its type is not ${OBJECT_TYPE}` };
  const read = readDocument(secret);
  if (typeof read === 'string') return { state: 'damaged', why: read };
  const { key, value, bytes } = read;
  if (names.object(key) !== name) {
    return { state: 'damaged', why: `it holds ${key.resource} ${orderedKey(key)}, whose name is another` };
  }
  if (!hasLabels(labels, names.objectLabels(key))) {
    return { state: 'damaged', why: `its labels are not those of ${key.resource} ${orderedKey(key)}` };
  }
  const writeId = secret.metadata.annotations?.[WRITE_ID] ?? '';
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
    return `data.${FIELD} is not JSON`; // the error would quote what may be secret
  }
  if (!isJsonObject(document)) return `data.${FIELD} is not an object`;
  const { resource, namespace, name, value } = document;
  if (typeof resource !== 'string' || typeof namespace !== 'string' || typeof name !== 'string') {
    return `data.${FIELD} does not say what it is`;
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
      `${key.resource} ${JSON.stringify(key.name)} is too large for the store: it is kept in a Secret, which holds ` +
      `${SECRET_BYTES_MAX} bytes at most, and even compressed it is larger. Make it smaller`,
  });
}
