/** Names and labels of the Secrets of a store. Pure. */

import { createHash } from 'node:crypto';
import type { StringMap } from '../../../../kube/object.ts';
import type { StoreKey, StoreRange } from '../../store.ts';

/** Objects and notes have different selectors: the cache must not contain notes. */
type Part = 'objects' | 'notes';

const MANAGED_BY = 'app.kubernetes.io/managed-by';
const STORE = 'endpoint-syncer/store';
const PART = 'endpoint-syncer/part';
/** For notes: the table. */
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

  /** `store`: any text. */
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

  /** Selects all objects, or those in the range. */
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

/** The characters of a text that are valid in a DNS label. */
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
