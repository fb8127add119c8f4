/** What the data of a Secret hold: kubeconfigs and platform keys are recognised whatever their key is called. Pure. */

import { parse } from 'yaml';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';

/** Longer texts that name the members of a kubeconfig are taken for one without being parsed. */
const PARSED_BYTES_MAX = 64 * 1024;
/** `cluster` and `user` lists, in YAML or JSON. */
const CLUSTERS = /["']?clusters["']?\s*:/;
const USERS = /["']?users["']?\s*:/;
/** The shape of a key of the key and token API: id, secret, checksum. */
const PLATFORM_KEY = /\bpak_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\b/;

export function holdsKubeconfig(data: JsonObject): boolean {
  return textsOf(data).some(isKubeconfig);
}

export function holdsPlatformKey(data: JsonObject): boolean {
  return textsOf(data).some((text) => PLATFORM_KEY.test(text));
}

function isKubeconfig(text: string): boolean {
  const escaped = text.includes('\\u');
  if (!escaped && !(CLUSTERS.test(text) && USERS.test(text))) return false;
  if (text.length > PARSED_BYTES_MAX) return true;
  try {
    const document = parse(text, { maxAliasCount: 100, logLevel: 'silent' }) as JsonValue; // YAML of JSON types
    return isJsonObject(document) && Array.isArray(document['clusters']) && Array.isArray(document['users']);
  } catch {
    return !escaped; // what a more lenient parser reads as one must not pass
  }
}

/** The values as text, decoded from base64. */
function textsOf(data: JsonObject): string[] {
  return Object.values(data).flatMap((value) =>
    typeof value === 'string' ? [Buffer.from(value, 'base64').toString('utf8')] : [],
  );
}
