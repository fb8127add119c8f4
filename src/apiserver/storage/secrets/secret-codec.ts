/** Encodes objects of the store as Secrets, and decodes them. */

import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import { type KubeObject, type StringMap, orderedKey } from '../../../kube/object.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../base/json.ts';
import { type StoredEntry, type StoreKey, type StoreRange } from '../store.ts';
import { failure, type StatusError } from '../../../kube/status-error.ts';
import { parseRevision } from './host-secrets.ts';
import type { Logger } from '../../../base/logger.ts';

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

export const OBJECT_TYPE = 'endpoint-syncer/object';
const WRITE_ID = 'endpoint-syncer/write';
const FIELD = 'object';
/** Kubernetes' limit for everything that a Secret holds, `core.MaxSecretSize`. */
const SECRET_BYTES_MAX = 1024 * 1024;
/** Smaller objects are not compressed, so that `kubectl` and `base64 -d` show them. */
const PLAIN_BYTES_MAX = 16 * 1024;
const TEXT_BYTES_MAX = 16 * 1024 * 1024;

/** Throws a `StatusError` (413) for an object that is larger than a Secret. */
export async function encodeSecret(
  names: SecretNames,
  { key, value, writeId }: { key: StoreKey; value: JsonObject; writeId: string },
): Promise<KubeObject> {
  const tooLarge =
    `${key.resource} ${JSON.stringify(key.name)} is too large for the store: a Secret holds at most ${SECRET_BYTES_MAX} bytes, ` +
    'and even the compressed object is larger; make the object smaller';
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: names.object(key),
      labels: names.objectLabels(key),
      annotations: { [WRITE_ID]: writeId },
    },
    type: OBJECT_TYPE,
    data: { [FIELD]: await pack(JSON.stringify({ ...key, value }), tooLarge) },
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

/** Encodes text as data of a Secret. Throws a `StatusError` (413) with `tooLarge` when it does not fit into one. */
export async function pack(text: string, tooLarge: string): Promise<string> {
  const plain = Buffer.from(text);
  if (plain.length > TEXT_BYTES_MAX) throw entityTooLarge(tooLarge);
  const bytes = plain.length <= PLAIN_BYTES_MAX ? plain : await promisify(gzip)(plain);
  if (bytes.length > SECRET_BYTES_MAX) throw entityTooLarge(tooLarge);
  return bytes.toString('base64');
}

function entityTooLarge(message: string): StatusError {
  return failure(413, 'RequestEntityTooLarge', message);
}

/** The JSON that {@link pack} has encoded, and the length of its text. A text says what is wrong, without the data, which may be secret. */
export function unpack(
  { data }: KubeObject,
  field: string,
): string | { readonly document: JsonValue; readonly length: number } {
  const base64 = isJsonObject(data) ? data[field] : undefined;
  if (typeof base64 !== 'string') return `it has no data.${field}`;
  try {
    const bytes = Buffer.from(base64, 'base64');
    const isCompressed = bytes[0] === 0x1f && bytes[1] === 0x8b; // JSON begins with neither
    const plain = isCompressed ? gunzipSync(bytes, { maxOutputLength: TEXT_BYTES_MAX }) : bytes;
    const text = plain.toString('utf8');
    return { document: JSON.parse(text) as JsonValue, length: text.length }; // JSON text is a JSON value
  } catch {
    return `data.${field} is not JSON`;
  }
}

/** The resourceVersion of the Secret as a number: versions of Kubernetes are increasing numbers, see KEP-5504. */
export function revisionOf({ metadata }: KubeObject): number {
  return parseRevision(metadata.resourceVersion ?? '');
}

export function writeIdOf({ metadata }: KubeObject): string {
  return metadata.annotations?.[WRITE_ID] ?? '';
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
  const read = unpack(secret, FIELD);
  if (typeof read === 'string') return read;
  const { document, length: bytes } = read;
  if (!isJsonObject(document)) return `data.${FIELD} is not an object`;
  const { resource, namespace, name, value } = document;
  if (typeof resource !== 'string' || typeof namespace !== 'string' || typeof name !== 'string') {
    return `data.${FIELD} has no resource, namespace or name`;
  }
  if (!isJsonObject(value)) return `data.${FIELD} has no value`;
  return { key: { resource, namespace, name }, value, bytes };
}

function hasLabels(actual: StringMap, wanted: StringMap): boolean {
  return Object.entries(wanted).every(([label, value]) => actual[label] === value);
}

/** Objects and notes have different selectors: the cache must not contain notes. */
type Part = 'objects' | 'notes';

const MANAGED_BY = 'app.kubernetes.io/managed-by';
const STORE = 'endpoint-syncer/store';
const PART = 'endpoint-syncer/part';
const RESOURCE = 'endpoint-syncer/resource';
const NAMESPACE = 'endpoint-syncer/namespace';

const PROGRAM = 'endpoint-syncer';
const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;
/** Prefix of a label value that is a digest; a text with this prefix is digested too, so that no two texts have the same value. */
const DIGESTED = 'sha256.';
/** 160 bits, against collisions, even deliberate ones. */
const DIGEST_CHARS = 32;
const READABLE_CHARS_MAX = 100;
/** Names of the sync engine never match: they end with the name of a virtual cluster or with ten hexadecimal digits after a `-`. */
const STORE_NAME = new RegExp(`^endpoint-syncer\\.(?:[a-z0-9.-]*\\.)?[a-z2-7]{${DIGEST_CHARS}}$`);
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** `store` distinguishes the Secrets of one store from those of other stores in the same namespace. */
export class SecretNames {
  readonly #store: string;

  constructor(store: string) {
    this.#store = store;
  }

  /** A readable part and a unique digest: names of objects may have characters that names of Secrets may not. */
  object({ resource, namespace, name }: StoreKey): string {
    const plural = resource.split('.')[0] ?? '';
    return this.#name([plural, namespace, name], ['objects', resource, namespace, name]);
  }

  notes(table: string, shard: number): string {
    return this.#name(['notes', table, String(shard)], ['notes', table, String(shard)]);
  }

  objectLabels(key: StoreKey): StringMap {
    return {
      ...this.#labels('objects'),
      [RESOURCE]: labelValue(key.resource),
      [NAMESPACE]: labelValue(key.namespace),
    };
  }

  /** Whether a Secret with this name and these labels may belong to this store; other programs do not use such names by accident. */
  mayBeOurs(name: string, labels: StringMap): boolean {
    const store = labels[STORE];
    return STORE_NAME.test(name) && (store === undefined || store === labelValue(this.#store));
  }

  notesLabels(table: string): StringMap {
    return { ...this.#labels('notes'), [RESOURCE]: labelValue(table) };
  }

  objectSelector(range?: StoreRange): string {
    const { resource, namespace } = range ?? {};
    return selector({
      ...this.#labels('objects'),
      ...(resource === undefined ? {} : { [RESOURCE]: labelValue(resource) }),
      ...(namespace === undefined ? {} : { [NAMESPACE]: labelValue(namespace) }),
    });
  }

  #labels(part: Part): StringMap {
    return { [MANAGED_BY]: PROGRAM, [STORE]: labelValue(this.#store), [PART]: part };
  }

  #name(readable: readonly string[], identity: readonly string[]): string {
    const words = readable.map(plain).filter((word) => word !== '');
    const text = words
      .join('.')
      .slice(0, READABLE_CHARS_MAX)
      .replace(/[.-]+$/, '');
    const digest = base32(JSON.stringify([this.#store, ...identity])).slice(0, DIGEST_CHARS);
    return [PROGRAM, text, digest].filter((part) => part !== '').join('.');
  }
}

function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
}

function labelValue(text: string): string {
  if (LABEL_VALUE.test(text) && !text.startsWith(DIGESTED)) return text;
  return DIGESTED + base32(text);
}

/** `a=,b=c`: an empty value selects the empty value. */
function selector(labels: StringMap): string {
  return Object.entries(labels)
    .map(([label, value]) => `${label}=${value}`)
    .join(',');
}

/** The SHA-256 of a text in lower-case base32 (RFC 4648), 52 characters. */
function base32(text: string): string {
  let bits = 0;
  let held = 0;
  let result = '';
  for (const byte of createHash('sha256').update(text).digest()) {
    held = ((held << 8) | byte) & 0xfff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      result += BASE32[(held >> bits) & 31] ?? '';
    }
  }
  return result + (BASE32[(held << (5 - bits)) & 31] ?? '');
}

const REMEMBERED_MAX = 1000;

export class SecretDecoder {
  readonly #names: SecretNames;
  readonly #logger: Logger;
  readonly #namespace: string;
  /** Name of a Secret → its version that was reported. */
  readonly #reported = new Map<string, string>();

  constructor(names: SecretNames, logger: Logger, namespace: string) {
    this.#names = names;
    this.#logger = logger;
    this.#namespace = namespace;
  }

  decode(secret: KubeObject, known?: Held): Decoded {
    const decoded = decodeSecret(this.#names, secret, known);
    if (decoded.state === 'damaged') this.#report(secret, decoded.why);
    return decoded;
  }

  /** The Secret is never deleted or overwritten, so that the operator can repair it. */
  #report({ metadata: { name, resourceVersion = '' } }: KubeObject, why: string): void {
    if (this.#reported.get(name) === resourceVersion) return;
    if (this.#reported.size >= REMEMBERED_MAX) this.#reported.clear();
    this.#reported.set(name, resourceVersion);
    this.#logger.warn(
      { secret: name, namespace: this.#namespace, why },
      'a Secret of the store cannot be read and is skipped: restore it from a backup, or delete it',
    );
  }
}
