/** One HTTP request and its response: collects or forwards the body, enforces the deadline, settles exactly once. */

import type { IncomingHttpHeaders } from 'node:http';
import { StringDecoder } from 'node:string_decoder';
import type { Gunzip } from 'node:zlib';
import type { Dispatcher } from 'undici';
import type { Clock, Timer } from '../../base/clock.ts';
import { TransportError } from '../types.ts';
import { messageOf } from '../../base/errors.ts';
import { InputBlocks } from '../../base/input-buffer.ts';
import type { InputBudget, InputShare } from './input-budget.ts';
import type { ReadPace } from './read-pace.ts';

export interface HttpRequest {
  readonly method: string;
  /** Starts with `/`; the base path of the server is put before it. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string;
  readonly accept?: string;
  /** The body has a credential, or the response says where one is sent: it is sent where `takesCredentials` allows it alone. */
  readonly isSecret?: boolean | undefined;
  /** The response may be large: over a network, compression is requested. */
  readonly isBulky?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Until the complete response has arrived; for a stream, its headers. */
  readonly timeoutMs: number;
  /** Called when a connection is free, before the request is sent. If it throws, the request is not sent. */
  readonly beforeSend?: (() => void) | undefined;
  /** Makes the response a stream: a successful response is passed on chunk by chunk, without limits of size and time. */
  readonly stream?: StreamHandler;
}

export interface StreamHandler {
  /** The response is a success; chunks follow. */
  started(): void;
  /** May throw, which ends the stream with this error. */
  chunk(chunk: Buffer): void;
  /** Memory of what is not complete. */
  readonly pendingBytes: number;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Empty for a successful stream. */
  readonly text: string;
}

export interface ExchangeLimits {
  readonly clock: Clock;
  readonly host: string;
  readonly responseBytesMax: number;
  /** Undefined: as fast as the bytes arrive. */
  readonly pace: ReadPace | undefined;
  /** Undefined: not limited. */
  readonly input: InputBudget | undefined;
}

interface Settle {
  resolve(response: HttpResponse): void;
  reject(error: unknown): void;
}

/** Error responses of streams are short. */
const ERROR_BODY_BYTES_MAX = 1024 * 1024;
/** Of one response. */
const INFORMATIONAL_MAX = 10;

export class Exchange implements Dispatcher.DispatchHandler {
  /** Of the connection that it is sent on. */
  meter: { progressed(): void } | undefined;
  readonly #request: HttpRequest;
  readonly #limits: ExchangeLimits;
  readonly #settle: Settle;
  readonly #timer: Timer;
  #controller: Dispatcher.DispatchController | undefined;
  #isSettled = false;
  #isStreaming = false;
  #informational = 0;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  /**
   * Decoded as it arrives. Collected bytes, and one text of a megabyte or more, would be memory outside of V8's heap that only a full
   * garbage collection gives back, in pieces that the allocator keeps. Measured with lists of 10 000 objects: 50 MiB.
   */
  #text = '';
  readonly #decoder = new StringDecoder('utf8');
  #gunzip: Gunzip | undefined;
  /** Of the body, as they arrived and as they are without compression. */
  readonly #bytes = { received: 0, collected: 0 };
  /** Neither a string nor a task of the decompressor for each piece. */
  readonly #blocks = new InputBlocks((block) => {
    if (this.#gunzip === undefined) this.#collect(block);
    else this.#gunzip.write(block);
  });
  readonly #share: InputShare | undefined;

  constructor(request: HttpRequest, limits: ExchangeLimits, settle: Settle) {
    this.#request = request;
    this.#limits = limits;
    this.#settle = settle;
    this.#timer = limits.clock.schedule(request.timeoutMs, () => this.#timedOut());
    this.#share = limits.input?.open((bytesMax) =>
      this.#stop(new UnfinishedInputError(this.#what(), bytesMax)),
    );
    const { signal } = request;
    if (signal === undefined) return;
    if (signal.aborted) this.#stop(signal.reason);
    else signal.addEventListener('abort', this.#aborted, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // It was cancelled while it waited for a connection, and nothing of it has been sent.
    if (this.#isSettled) {
      controller.abort(new Error('cancelled'));
      return;
    }
    try {
      this.#request.beforeSend?.();
    } catch (error) {
      this.#stop(error);
    }
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return this.#informed();
    this.meter?.progressed();
    this.#status = status;
    this.#headers = headers;
    const { stream } = this.#request;
    if (stream === undefined || status > 299) {
      if (headers['content-encoding'] === 'gzip') this.#gunzip = this.#decompressor();
      return;
    }
    this.#isStreaming = true;
    this.#timer.cancel();
    stream.started();
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isSettled) return;
    this.meter?.progressed();
    if (this.#isStreaming) this.#passOn(chunk);
    else if (this.#isWithinLimit('received', chunk)) this.#blocks.add(chunk);
    this.#holdShare();
  }

  onResponseEnd(): void {
    if (this.#isSettled) return;
    this.#blocks.flush();
    if (this.#gunzip === undefined) this.#complete();
    else this.#gunzip.end();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.fail(error);
  }

  /** There was no response, or it was cut off. */
  fail(error: unknown): void {
    if (this.#finish()) this.#settle.reject(transportError(error, this.#what()));
  }

  #decompressor(): Gunzip {
    // Loaded without an import, see src/base/health.ts.
    const gunzip = process.getBuiltinModule('node:zlib').createGunzip();
    gunzip.on('data', (chunk: Buffer) => {
      this.#limits.pace?.spend(chunk.length);
      this.#collect(chunk);
      this.#holdShare();
    });
    gunzip.on('error', (error) => this.fail(error));
    gunzip.on('end', () => this.#complete());
    return gunzip;
  }

  #collect(chunk: Buffer): void {
    if (this.#isWithinLimit('collected', chunk)) this.#text += this.#decoder.write(chunk);
  }

  #isWithinLimit(count: 'received' | 'collected', chunk: Buffer): boolean {
    this.#bytes[count] += chunk.length;
    const { responseBytesMax } = this.#limits;
    const limit = this.#status > 299 ? Math.min(ERROR_BODY_BYTES_MAX, responseBytesMax) : responseBytesMax;
    if (this.#bytes[count] > limit)
      this.#stop(new ResponseTooLargeError(this.#what(), `is larger than ${limit} bytes`));
    return this.#bytes[count] <= limit;
  }

  #complete(): void {
    const text = this.#text + this.#decoder.end();
    if (!this.#finish()) return;
    this.#settle.resolve({ status: this.#status, headers: this.#headers, text });
  }

  readonly #aborted = (): void => this.#stop(this.#request.signal?.reason);

  #informed(): void {
    this.#informational += 1;
    if (this.#informational <= INFORMATIONAL_MAX) return;
    const what = `the server sent more than ${INFORMATIONAL_MAX} informational responses to ${this.#what()}`;
    this.#stop(new TransportError(what));
  }

  #holdShare(): void {
    const { received, collected } = this.#bytes;
    const unread = this.#gunzip === undefined ? 0 : collected;
    this.#share?.hold(this.#isStreaming ? (this.#request.stream?.pendingBytes ?? 0) : received + unread);
  }

  #passOn(chunk: Buffer): void {
    try {
      this.#request.stream?.chunk(chunk);
    } catch (error) {
      this.#stop(error);
    }
  }

  #timedOut(): void {
    this.#stop(new TransportError(`${this.#what()} took more than ${this.#request.timeoutMs} ms`));
  }

  /** Cancels the exchange with this error. */
  #stop(error: unknown): void {
    if (!this.#finish()) return;
    this.#settle.reject(error);
    this.#controller?.abort(new Error('cancelled'));
  }

  /** Returns true on the first call. */
  #finish(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#timer.cancel();
    this.#share?.release();
    this.#text = '';
    this.#gunzip?.destroy();
    this.#request.signal?.removeEventListener('abort', this.#aborted);
    return true;
  }

  #what(): string {
    return `${this.#request.method} ${this.#limits.host}${this.#request.path}`;
  }
}

/** The response is larger than a limit; a list can be retried with smaller pages. */
export class ResponseTooLargeError extends TransportError {
  constructor(what: string, excess: string) {
    super(`the response to ${what} ${excess}`);
  }
}

/** The connections that share a limit have begun to send too much, and this one most of it. */
class UnfinishedInputError extends TransportError {
  constructor(what: string, bytesMax: number) {
    super(
      `the response to ${what} was cut off: unfinished responses have more than ${bytesMax} bytes, and it had most of them`,
    );
  }
}

// Explains why there was no response, with the next step where it is known.

const UNKNOWN_AUTHORITY =
  "the server's certificate is not signed by the authority in the kubeconfig (certificate-authority)";

const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: is the API server running, is the port right?',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  ENOTFOUND: 'the host name does not resolve',
  EAI_AGAIN: 'the host name does not resolve at the moment',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the network',
  ETIMEDOUT: 'the connection timed out',
  UND_ERR_CONNECT_TIMEOUT: 'the connection could not be opened in time',
  UND_ERR_SOCKET: 'the server closed the connection',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID:
    "the server's certificate is for another name: set tls-server-name or use a name that it holds",
  EPROTO: 'the TLS handshake failed: is this an https port, does the server want a client certificate?',
};

/** Wraps an error of the network or of the pool. `what` is the request: `GET host/path`. */
function transportError(error: unknown, what: string): TransportError {
  if (error instanceof TransportError) return error;
  const code = errorCode(error);
  const reason = messageOf(error);
  const hint = code === undefined ? undefined : HINTS[code];
  const detail = hint === undefined ? reason : `${hint} (${code})`;
  return new TransportError(`no response to ${what}: ${detail}`, { cause: error });
}

function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('code' in error && typeof error.code === 'string') return error.code;
  // Several addresses were tried: the first failure stands for all.
  if (error instanceof AggregateError) return errorCode(error.errors[0]);
  return error.cause === undefined ? undefined : errorCode(error.cause);
}
