/** Parses the body of a watch: JSON documents, one per line, in arbitrary chunks. */

import { StatusError } from '../status-error.ts';
import { asObject, withLists, type KubeObject } from '../object.ts';
import { isJsonObject, parseJson, type JsonObject, type JsonValue } from '../../base/json.ts';
import { InputBuffer } from '../../base/input-buffer.ts';
import type { StreamHandler } from './exchange.ts';
import { PIECE_BYTES } from './input-budget.ts';
import { parseProblem } from './parse-cost.ts';
import type { ReadPace } from './read-pace.ts';
import { asStatus, problemOf } from './responses.ts';
import { MalformedStreamError, TransportError, type WatchEventType, type WatchHandler } from '../types.ts';

/** Objects are limited to a few MiB by every API server; a longer line is not an event. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/**
 * Cuts chunks into lines and lines into events. Throws `StatusError` for an ERROR event, `MalformedStreamError` for a line that is
 * no event, and what the handler throws.
 */
export class WatchStream implements StreamHandler {
  readonly #handler: WatchHandler;
  readonly #lineBytesMax: number;
  readonly #pace: ReadPace | undefined;
  /** The beginning of a line whose end has not come yet. Bytes, because a chunk may end inside a character. */
  readonly #pending: InputBuffer;

  /** `pace`: a line costs {@link PIECE_BYTES} beside its bytes and its time, and must be within the limits of {@link parseProblem}. */
  constructor(handler: WatchHandler, lineBytesMax = LINE_BYTES_MAX, pace?: ReadPace) {
    this.#handler = handler;
    this.#lineBytesMax = lineBytesMax;
    this.#pace = pace;
    this.#pending = new InputBuffer(lineBytesMax);
  }

  get pendingBytes(): number {
    return this.#pending.capacity;
  }

  started(): void {
    this.#handler.started();
  }

  chunk(chunk: Buffer): void {
    if (this.#pace === undefined) this.#read(chunk);
    else this.#pace.timed(() => this.#read(chunk));
  }

  #read(chunk: Buffer): void {
    this.#handler.dataReceived();
    let start = 0;
    let lines = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#line(this.#complete(chunk.subarray(start, end)));
      start = end + 1;
      lines += 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    this.#pace?.spend(lines * PIECE_BYTES);
  }

  /** The server has ended the stream. Throws `TransportError` when that was in the middle of a line. */
  end(): void {
    const { length } = this.#pending;
    if (length > 0) throw new TransportError(`the watch ended inside an event, after ${length} bytes of it`);
  }

  #complete(end: Buffer): Buffer {
    if (this.#pending.length === 0) return end;
    this.#keep(end);
    return this.#pending.take();
  }

  #keep(bytes: Buffer): void {
    if (this.#pending.append(bytes)) return;
    throw new MalformedStreamError(`a line of the watch is longer than ${this.#lineBytesMax} bytes`);
  }

  /** The response to each write is cached before its event comes: the event is a tenth of the work of a sync, and nothing in it is new. */
  #isIgnored(line: Buffer): boolean {
    const handler = this.#handler;
    if (handler.ignores === undefined) return false;
    const match = BEGINNING.exec(line.toString('latin1', 0, BEGINNING_BYTES_MAX));
    if (match === null) return false;
    const [, type, name = '', namespace = '', uid = '', resourceVersion = ''] = match;
    return handler.ignores(type === 'ADDED' ? type : 'MODIFIED', { namespace, name, uid, resourceVersion });
  }

  #line(bytes: Buffer): void {
    if (this.#isIgnored(bytes)) return;
    const line = bytes.toString('utf8');
    if (line === '' || line === '\r') return;
    const problem = this.#pace === undefined ? undefined : parseProblem(line);
    if (problem !== undefined) throw new MalformedStreamError(`an event of the watch has ${problem}`);
    const event = parse(line);
    const { type, object } = event;
    switch (type) {
      case 'ADDED':
      case 'MODIFIED':
      case 'DELETED':
      case 'BOOKMARK':
        this.#handler.event(type, asWatched(type, object));
        return;
      case 'ERROR':
        throw streamError(object);
      default:
        throw new MalformedStreamError(`a line of the watch is not a watch event: ${excerpt(line)}`);
    }
  }
}

/**
 * The beginning of an event as API servers write it: up to the version, with no member in another place. A text in it has neither quotes nor escapes,
 * so that it cannot look like a member, and only ASCII, so that bytes are characters. Objects without a namespace are rare, and are parsed.
 */
const BEGINNING =
  /^\{"type":"(ADDED|MODIFIED)","object":\{"kind":"\w+","apiVersion":"[\w./-]+","metadata":\{"name":"([\w.:-]+)",(?:"generateName":"[\w.:-]+",)?"namespace":"([\w.-]+)","uid":"([\w.:-]+)","resourceVersion":"(\d+)"[,}]/;

/** More than a beginning with names of the maximum length has. */
const BEGINNING_BYTES_MAX = 1024;

function parse(line: string): { type: unknown; object: JsonValue | undefined } {
  let value: unknown;
  try {
    value = parseJson(line);
  } catch (cause) {
    throw new MalformedStreamError(`a line of the watch is not JSON: ${excerpt(line)}`, { cause });
  }
  if (!isJsonObject(value)) throw new MalformedStreamError(`not a watch event: ${excerpt(line)}`);
  return { type: value['type'], object: value['object'] };
}

/** Requires a name and a version, without which the object cannot be cached. */
function asWatched(type: WatchEventType, object: JsonValue | undefined): KubeObject {
  const metadata = isJsonObject(object) ? object['metadata'] : undefined;
  const version = isJsonObject(metadata) ? metadata['resourceVersion'] : undefined;
  if (typeof version !== 'string' || version === '')
    throw new MalformedStreamError(`${type} without an object, or its resourceVersion`);
  const why = type === 'BOOKMARK' ? undefined : problemOf(object);
  if (why !== undefined) throw new MalformedStreamError(`${type} of an object that is malformed: ${why}`);
  return withLists(asObject(object as JsonObject)); // checked above as far as the program relies on it
}

function streamError(object: JsonValue | undefined): Error {
  const status = asStatus(object, 500);
  if (status === undefined) return new MalformedStreamError('an ERROR event without a Status');
  return new StatusError(status);
}

function excerpt(line: string): string {
  return JSON.stringify(line.slice(0, 80));
}
