/** Runs the steps of the contract and records the responses, without names, uids, times and versions, which differ between runs. */

import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import type { RawAnswer, RawClient, RawRequest } from './raw-client.ts';

/** One request. `{ns}` stands for the namespace of the run, `{rv:ID}` and `{uid:ID}` for those in the response to an earlier step. */
export interface Step {
  readonly id: string;
  readonly request: RawRequest;
  /** Why the response of the embedded server differs intentionally: then only the status code is compared. */
  readonly differs?: string;
  /** The embedded server's own status code, where that differs too. */
  readonly ourStatus?: number;
}

export interface Recorded {
  readonly status: number;
  readonly warning?: string;
  readonly body?: JsonValue;
}

export type Transcript = Record<string, Recorded>;

export async function record(
  client: RawClient,
  steps: readonly Step[],
  namespace: string,
): Promise<Transcript> {
  const answers = new Map<string, RawAnswer>();
  const names = new Placeholders(namespace);
  const transcript: Transcript = {};
  for (const step of steps) {
    const request = filled(step.request, namespace, answers);
    const answer = await client.send(request);
    answers.set(step.id, answer);
    const warning = answer.headers.get('warning');
    const body = names.replaceIn(step.id, answer.json ?? answer.text);
    transcript[step.id] =
      step.differs === undefined
        ? { status: answer.status, ...(warning === null ? {} : { warning }), body }
        : { status: answer.status };
  }
  return transcript;
}

function filled(request: RawRequest, namespace: string, answers: ReadonlyMap<string, RawAnswer>): RawRequest {
  const text = JSON.stringify(request)
    .replaceAll('{ns}', namespace)
    .replaceAll(/\{(rv|uid|continue):([^}]+)\}/g, (_all, what: string, id: string) => {
      const metadata = answers.get(id)?.json?.['metadata'];
      const field = { rv: 'resourceVersion', uid: 'uid', continue: 'continue' }[what] ?? '';
      const value = isJsonObject(metadata) ? metadata[field] : undefined;
      // A step that failed shows as a difference of its own.
      return typeof value === 'string' ? value : `no-${field}-of-${id}`;
    });
  return JSON.parse(text) as RawRequest; // a request with other text in it
}

const AGE = /^\d+[smhdy](\d+[smhdy])?$/;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const UID = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;

/** Names for values that differ from run to run; the same value gets the same name. */
class Placeholders {
  readonly #namespace: string;
  readonly #seen = new Map<string, string>();
  #step = '';

  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  /** New values are named after the step that shows them first. */
  replaceIn(step: string, value: JsonValue): JsonValue {
    this.#step = step;
    return this.#value(value);
  }

  #value(value: JsonValue): JsonValue {
    if (typeof value === 'string') return AGE.test(value) ? '{age}' : this.#text(value);
    if (Array.isArray(value)) return value.map((item) => this.#value(item));
    if (!isJsonObject(value)) return value;
    const isList = Array.isArray(value['items']) || Array.isArray(value['rows']);
    const result: JsonObject = {};
    for (const [key, item] of Object.entries(value)) {
      // The words that describe a column are ours.
      if (key === 'description' && 'priority' in value) continue;
      // The version of a list also counts writes of other clients.
      if (key === 'metadata' && isList) result[key] = listMetadata(item);
      else if (key === 'resourceVersion' && typeof item === 'string') result[key] = this.#named('rv', item);
      else if (UNORDERED.includes(key) && Array.isArray(item)) result[key] = sorted(this.#value(item));
      else result[this.#text(key)] = this.#value(item);
    }
    return result;
  }

  #text(text: string): string {
    return text
      .replaceAll(this.#namespace, '{ns}')
      .replaceAll(
        /resourceVersion: "(\d+)"/g,
        (_all, version: string) => `resourceVersion: "${this.#named('rv', version)}"`,
      )
      .replaceAll(TIME, '{time}')
      .replaceAll(UID, (uid) => this.#named('uid', uid))
      .replaceAll(/\((\d{1,9})\)/g, (all, version: string) =>
        this.#seen.has(`rv ${version}`) ? `(${this.#named('rv', version)})` : all,
      );
  }

  #named(kind: string, value: string): string {
    const key = `${kind} ${value}`;
    const known = this.#seen.get(key);
    if (known !== undefined) return known;
    const base = `${kind}:${this.#step}`;
    const taken = [...this.#seen.values()].filter((other) => other.startsWith(`{${base}`)).length;
    const name = taken === 0 ? `{${base}}` : `{${base}:${taken + 1}}`;
    this.#seen.set(key, name);
    return name;
  }
}

/** Lists whose order is that of a Go map, or of the second in which each entry was written. */
const UNORDERED = ['causes', 'managedFields'];

function sorted(list: JsonValue): JsonValue {
  if (!Array.isArray(list)) return list;
  return list
    .map((item) => ({ item, text: canonicalJson(item) }))
    .sort((a, b) => (a.text < b.text ? -1 : 1))
    .map(({ item }) => item);
}

function listMetadata(metadata: JsonValue): JsonValue {
  if (!isJsonObject(metadata)) return metadata;
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(metadata)) {
    result[key] = key === 'resourceVersion' || key === 'continue' ? `{${key}}` : value;
  }
  return result;
}
