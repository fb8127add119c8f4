/** How an object of the store is called among the Secrets of a namespace, and the labels by which it is found. Pure. */

import { createHash } from 'node:crypto';
import type { StringMap } from '../../../../kube/object.ts';
import type { StoreKey, StoreRange } from '../../store.ts';

/** Objects and notes never share a selector: the cache must not see notes. */
type Part = 'objects' | 'notes';

const MANAGED_BY = 'app.kubernetes.io/managed-by';
const STORE = 'endpoint-syncer/store';
const PART = 'endpoint-syncer/part';
/** For notes: the table. */
const RESOURCE = 'endpoint-syncer/resource';
const NAMESPACE = 'endpoint-syncer/namespace';

const PROGRAM = 'endpoint-syncer';
const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;
/** Marks a label value that is a digest; what already begins so is digested too, hence no two values meet. */
const DIGESTED = 'sha256.';
/** 160 bits: nobody finds two keys of one name, even on purpose. */
const DIGEST_CHARS = 32;
const READABLE_CHARS_MAX = 100;
/** What every name ends with: no syncer's names do, they end with a virtual cluster's name or ten hexadecimal digits after a `-`. */
const STORE_NAME = new RegExp(`^endpoint-syncer\\.(?:[a-z0-9.-]*\\.)?[a-z2-7]{${DIGEST_CHARS}}$`);
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** The Secrets of one store, told apart from those of other stores and programs in the same namespace by `store`. */
export class SecretNames {
  readonly #store: string;

  /** `store`: any text. */
  constructor(store: string) {
    this.#store = store;
  }

  /** A readable part for people, and a digest that makes it unique: names of objects may hold what those of Secrets may not. */
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

  /** A Secret with this name and these labels could be one of this store's; other programs cannot give it such a name by accident. */
  mayBeOurs(name: string, labels: StringMap): boolean {
    const store = labels[STORE];
    return STORE_NAME.test(name) && (store === undefined || store === labelValue(this.#store));
  }

  notesLabels(table: string): StringMap {
    return { ...this.#labels('notes'), [RESOURCE]: labelValue(table) };
  }

  /** Every object; with a range, those in it. */
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

/** What a DNS label may hold of a text. */
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

/** The SHA-256 of a text in RFC 4648's alphabet, lower case, 52 characters. */
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
