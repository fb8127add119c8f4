/** A raw HTTP client for an API server, which does not interpret responses. */

import { Agent, fetch, type RequestInit, type Response, type Headers } from 'undici';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';

export interface ServerAddress {
  readonly url: string;
  readonly token?: string;
  /** PEM text. */
  readonly ca?: string;
}

export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string is sent as it is, anything else as JSON. */
  readonly body?: JsonValue;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Null when the body is not JSON. */
  readonly json: JsonObject | null;
}

export class RawClient implements AsyncDisposable {
  readonly #address: ServerAddress;
  readonly #agent: Agent;

  constructor(address: ServerAddress) {
    this.#address = address;
    this.#agent = new Agent({ connect: address.ca === undefined ? {} : { ca: address.ca } });
  }

  async send(request: RawRequest): Promise<RawAnswer> {
    const response = await this.#fetch(request);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  }

  /** Opens a watch; resolves when the headers have arrived. */
  async watch(path: string, headers: Readonly<Record<string, string>> = {}): Promise<RawWatch> {
    const abort = new AbortController();
    const response = await this.#fetch({ method: 'GET', path, headers }, abort.signal);
    return new RawWatch(response, abort);
  }

  #fetch({ method, path, headers, body }: RawRequest, signal?: AbortSignal): Promise<Response> {
    const { url, token } = this.#address;
    const all: Record<string, string> = { 'user-agent': 'contract/1', ...headers };
    if (token !== undefined) all['authorization'] = `Bearer ${token}`;
    if (body !== undefined) all['content-type'] ??= 'application/json';
    return fetch(url + path, {
      method,
      headers: all,
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
      dispatcher: this.#agent,
    } satisfies RequestInit);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}

export interface RawEvent {
  readonly type: string;
  readonly object: JsonObject;
}

/** The events of one watch, one at a time. */
export class RawWatch implements AsyncDisposable {
  readonly status: number;
  readonly headers: Headers;
  readonly #abort: AbortController;
  readonly #lines: AsyncGenerator<string, void>;

  constructor(response: Response, abort: AbortController) {
    this.status = response.status;
    this.headers = response.headers;
    this.#abort = abort;
    this.#lines = linesOf(response);
  }

  /** The next event, or undefined when the server has ended the stream. */
  async next(): Promise<RawEvent | undefined> {
    const line: IteratorResult<string, void> = await this.#lines.next();
    return line.done ? undefined : (JSON.parse(line.value) as RawEvent); // one event per line
  }

  /** The next `count` events as `TYPE name`, or `TYPE` where there is no name. */
  async summary(count: number): Promise<string[]> {
    const found: string[] = [];
    for (let i = 0; i < count; i++) {
      const event = await this.next();
      if (!event) break;
      const { name } = (event.object['metadata'] ?? {}) as { name?: string };
      found.push(name === undefined ? event.type : `${event.type} ${name}`);
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.#lines.return().catch(() => undefined);
  }
}

/** At each character at which Node's `readline` splits, which clients in JavaScript use. */
const LINE_ENDS = /[\n\u2028\u2029]/u;

async function* linesOf(response: Response): AsyncGenerator<string, void> {
  let pending = '';
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body ?? []) {
      pending += decoder.decode(chunk as Uint8Array, { stream: true }); // a body is bytes
      const lines = pending.split(LINE_ENDS);
      pending = lines.pop() ?? '';
      yield* lines;
    }
  } catch (error) {
    if (!(error instanceof Error && error.name === 'AbortError')) throw error;
  }
}

function parsed(text: string): JsonObject | null {
  try {
    return JSON.parse(text) as JsonObject; // responses of an API server are objects
  } catch {
    return null;
  }
}
