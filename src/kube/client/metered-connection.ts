/**
 * Connections on which each byte of the server counts. A parser of HTTP reports the bytes of headers and bodies alone: extensions of chunks, line feeds
 * before a response and the phrase of its status may be endless, and so may the session tickets of TLS.
 */

import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Client as UndiciClient, Dispatcher } from 'undici';
import type { Clock, Timer } from '../../base/clock.ts';
import { TransportError } from '../types.ts';
import { Exchange } from './exchange.ts';
import { PIECE_BYTES } from './input-budget.ts';
import type { ReadPace } from './read-pace.ts';
import { type buildConnector, Client } from './undici-parts.ts';

export interface MeterOptions {
  readonly clock: Clock;
  /** A token for each byte, and for each piece {@link PIECE_BYTES}. */
  readonly pace: ReadPace;
}

type Connector = ReturnType<typeof buildConnector>;

/** Bytes of the server without one of a header or a body. The headers of a response are limited to 16 KiB. */
const SILENT_BYTES_MAX = 64 * 1024;
/** As much as a session ticket needs of a processor. */
const TICKET_BYTES = 4096;
/** Reading goes on for several pieces at a time, because each resumption has a cost too. */
const PAUSE_MIN_MS = 20;

/** What the server sends on the connection of one client. */
class Meter {
  readonly #options: MeterOptions;
  #socket: MeteredSocket | undefined;
  #silentBytes = 0;

  constructor(options: MeterOptions) {
    this.#options = options;
  }

  connected(socket: MeteredSocket): void {
    this.#socket = socket;
    this.#silentBytes = 0;
  }

  received(bytes: number): void {
    if (this.#silentBytes >= SILENT_BYTES_MAX) {
      const what = `the server sent ${this.#silentBytes} bytes that are neither a header nor a body`;
      this.#socket?.destroy(new TransportError(`${what}: the connection was closed`));
      return;
    }
    this.#silentBytes += bytes;
    this.#spend(bytes);
  }

  /** The headers of a response, or a piece of a body. */
  progressed(): void {
    this.#silentBytes = 0;
    this.#spend(PIECE_BYTES);
  }

  #spend(bytes: number): void {
    const { clock, pace } = this.#options;
    const pauseMs = pace.spend(bytes);
    if (pauseMs > 0) this.#socket?.hold(clock, Math.max(pauseMs, PAUSE_MIN_MS));
  }
}

/** A socket that passes everything on. While it is held, the bytes of the server wait in the buffers of the system, then in those of the server. */
class MeteredSocket extends Duplex {
  readonly #socket: Socket;
  #hold: Timer | undefined;
  #isFull = false;

  constructor(socket: Socket, meter: Meter) {
    super({ readableHighWaterMark: socket.readableHighWaterMark });
    this.#socket = socket;
    meter.connected(this);
    socket.on('data', (chunk: Buffer) => {
      this.#isFull = !this.push(chunk);
      meter.received(chunk.length);
      this.#read();
    });
    socket.on('session', () => meter.received(TICKET_BYTES));
    socket.on('end', () => this.push(null));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  hold(clock: Clock, ms: number): void {
    this.#hold?.cancel();
    this.#hold = clock.schedule(ms, () => {
      this.#hold = undefined;
      this.#read();
    });
    this.#read();
  }

  #read(): void {
    if (this.#isFull || this.#hold !== undefined) this.#socket.pause();
    else this.#socket.resume();
  }

  override _read(): void {
    this.#isFull = false;
    this.#read();
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.#socket.write(chunk, encoding, callback);
  }

  override _final(callback: () => void): void {
    this.#socket.end(callback);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#hold?.cancel();
    this.#socket.destroy();
    callback(error);
  }
}

/** The client of one connection. */
class MeteredClient extends Client {
  readonly #meter: Meter;

  constructor(origin: string | URL, options: UndiciClient.Options, meter: Meter) {
    super(origin, options);
    this.#meter = meter;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof Exchange) handler.meter = this.#meter;
    return super.dispatch(options, handler);
  }
}

/** For a pool. */
export function meteredClients(
  connect: Connector,
  options: MeterOptions,
): (origin: URL, options: object) => Dispatcher {
  return (origin, settings) => {
    const meter = new Meter(options);
    const metered: Connector = (target, callback) =>
      connect(target, (...[error, socket]) => {
        if (error !== null) callback(error, null);
        // The pool uses what a stream has, and a few members of a socket only where they exist.
        else callback(null, new MeteredSocket(socket, meter) as unknown as Socket);
      });
    return new MeteredClient(origin, { ...settings, connect: metered }, meter);
  };
}
